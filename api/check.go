package api

// CheckLevel is how a finding of a check is to be taken.
type CheckLevel string

// The levels of findings.
const (
	CheckOK   CheckLevel = "ok"
	CheckWarn CheckLevel = "warn"
	CheckFail CheckLevel = "fail"
)

// CheckReport says whether a run could start on a backend, and why not (N5). OK decides the command's exit code.
type CheckReport struct {
	Backend         string            `json:"backend"`
	Type            BackendType       `json:"type" enum:"local,ssh,slurm,agent"`
	OK              bool              `json:"ok"`
	Summary         string            `json:"summary" doc:"The verdict in one line"`
	Items           []CheckItem       `json:"items"`
	Python          string            `json:"python" doc:"Version of the interpreter that would train"`
	GPUs            []GPU             `json:"gpus"`
	MissingPackages []MissingPackages `json:"missing_packages"`
}

// CheckItem is one finding.
type CheckItem struct {
	Level CheckLevel `json:"level" enum:"ok,warn,fail"`
	Topic string     `json:"topic" example:"python"`
	Text  string     `json:"text"`
	Hint  string     `json:"hint"`
}

// MissingPackages names what a trainer lacks on a backend.
type MissingPackages struct {
	Trainer  string   `json:"trainer"`
	Packages []string `json:"packages"`
}

// CheckRequest asks for a check of a backend.
type CheckRequest struct {
	Trainer string `json:"trainer,omitempty" maxLength:"200" doc:"Fail when this trainer cannot run there; absent: when none can"`
	Probe   bool   `json:"probe,omitempty" doc:"slurm: submit a one-minute job that imports the trainer's packages"`
}
