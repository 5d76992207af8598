package api

// Spec is what a worker reads: the published peer's spec.json, version 1, and a little more.
type Spec struct {
	V           int            `json:"v"`
	RunID       RunID          `json:"run_id"`
	Attempt     int            `json:"attempt"`
	Trainer     string         `json:"trainer"`
	Schemas     []Scheme       `json:"schemas"`
	BundleDir   string         `json:"bundle_dir"`
	Workdir     string         `json:"workdir" doc:"The artifacts folder"`
	Params      map[string]any `json:"params"`
	Seed        int64          `json:"seed"`
	Limits      Limits         `json:"limits"`
	EventsFile  string         `json:"events_file,omitempty" doc:"Where the worker writes its events; absent: standard output"`
	TrainersDir *string        `json:"trainers_dir" nullable:"true"`

	CheckpointDir string `json:"checkpoint_dir,omitempty" doc:"Where checkpoints are kept until there is a result; none of them is an artifact"`
}

// Limits bound a worker. Nil means no limit.
type Limits struct {
	MaxWallS   *float64 `json:"max_wall_s" nullable:"true"`
	MaxRAMMB   *int64   `json:"max_ram_mb" nullable:"true"`
	Device     string   `json:"device"`
	NumThreads *int     `json:"num_threads" nullable:"true"`
}

// Job is a run as it is handed to an agent. Spec's folders are empty: the agent fills them in.
type Job struct {
	RunID             RunID   `json:"run_id"`
	Lease             string  `json:"lease" doc:"Names this holder of the run; every later call carries it"`
	Spec              Spec    `json:"spec"`
	GraceSeconds      float64 `json:"grace_seconds" doc:"Time between TERM and KILL; 20 when absent"`
	HeartbeatTimeoutS float64 `json:"heartbeat_timeout_s" doc:"Silence after which the other side takes this one for lost"`
	BundleDigest      string  `json:"bundle_digest"`
	NextSeq           int64   `json:"next_seq" doc:"Sequence number of the first event that the server does not have"`
}

// Answer is the server's reply to progress and heartbeat.
type Answer struct {
	Cancel       bool    `json:"cancel"`
	GraceSeconds float64 `json:"grace_seconds"`
	NextSeq      int64   `json:"next_seq"`
}

// Finish is an agent's last word on a job.
type Finish struct {
	ExitCode    *int              `json:"exit_code" nullable:"true" required:"false" doc:"The worker's; null when it is not known"`
	Cancelled   bool              `json:"cancelled" required:"false" doc:"The worker was stopped because of a cancel"`
	ErrorCode   string            `json:"error_code,omitempty" pattern:"^[a-z0-9_]{0,60}$" doc:"Set when the agent knows why it failed; the worker's own error event comes first"`
	Error       string            `json:"error,omitempty"`
	Hint        string            `json:"hint,omitempty"`
	ArtifactURI string            `json:"artifact_uri,omitempty" doc:"host:directory of the model's files"`
	Stderr      []string          `json:"stderr,omitempty" doc:"Last lines"`
	Host        string            `json:"host,omitempty" maxLength:"255"`
	Environment map[string]string `json:"environment,omitempty"`
}

// Handle finds a worker again, after a restart of whoever started it. Pids are reused, so the start time and the boot
// they belong to are part of it.
type Handle struct {
	Backend   string `json:"backend"`
	Dir       string `json:"dir" doc:"The job directory"`
	Host      string `json:"host"`
	BootID    string `json:"boot_id"`
	Pid       int    `json:"pid" doc:"Of the shim, which leads the worker's session"`
	StartTime int64  `json:"start_time" doc:"Of that pid, in clock ticks since boot"`
	Marker    string `json:"marker" doc:"Random; in the environment of every process of the job"`

	SlurmJob     string `json:"slurm_job,omitempty" doc:"Id of the job in the scheduler, once it is known; then there is no pid"`
	SlurmCluster string `json:"slurm_cluster,omitempty" doc:"Its cluster, where sbatch named one"`
}
