package api

// Trainer is a way to train: what it takes, what it needs and whether it is available here (R10).
type Trainer struct {
	Name              string         `json:"name"`
	Description       string         `json:"description"`
	Licence           string         `json:"licence"`
	LicenceURL        string         `json:"licence_url"`
	CommercialUse     bool           `json:"commercial_use"`
	Kinds             []SchemeKind   `json:"kinds"`
	Modalities        []string       `json:"modalities"`
	Packages          []string       `json:"packages" doc:"Packages it needs, as pip takes them"`
	MissingPackages   []string       `json:"missing_packages" doc:"Those that the local interpreter lacks"`
	InstallHint       string         `json:"install_hint"`
	Available         bool           `json:"available" doc:"It can train with the local interpreter"`
	UnavailableReason string         `json:"unavailable_reason"`
	Params            map[string]any `json:"params" doc:"JSON Schema of its parameters"`
	Distributed       bool           `json:"distributed"`
	LocalOnly         bool           `json:"local_only"`
	Checkpoints       bool           `json:"checkpoints"`
	Source            string         `json:"source" enum:"built-in,study" doc:"Where it comes from: the program, or the study's trainers_dir"`
}

// TrainerList lists the trainers.
type TrainerList struct {
	Trainers []Trainer `json:"trainers"`
}

// Environment is what an interpreter says of itself: its version, the trainers it can run, the device it would use.
type Environment struct {
	Python     string    `json:"python" doc:"Version of the interpreter"`
	Executable string    `json:"executable"`
	Trainers   []Trainer `json:"trainers"`
	Device     *Device   `json:"device,omitempty"`
}

// Device is where a run would compute.
type Device struct {
	Name     string   `json:"name" example:"cpu" doc:"cpu, mps, cuda:0"`
	Text     string   `json:"text" example:"CPU (8 threads)"`
	Warnings []string `json:"warnings"`
	GPUs     []GPU    `json:"gpus"`
}

// GPU is one accelerator of a machine. Memory is in mebibytes.
type GPU struct {
	Index         int    `json:"index"`
	Name          string `json:"name"`
	MemoryFreeMB  *int64 `json:"memory_free_mb" nullable:"true"`
	MemoryTotalMB *int64 `json:"memory_total_mb" nullable:"true"`
	Utilization   *int64 `json:"utilization" nullable:"true" doc:"Percent"`
	Supported     bool   `json:"supported" doc:"The installed torch has kernels for it"`
	Chosen        bool   `json:"chosen" doc:"A run would get it"`
}
