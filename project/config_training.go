package project

import "potato/api"

// ModelTraining is the config's model_training block (C2). Seconds are numbers and may have a fraction; sizes carry
// their unit in the key's name, a megabyte being 1024 * 1024 bytes.
type ModelTraining struct {
	Enabled                  bool              `yaml:"enabled" doc:"Train models on this study"`
	Backend                  string            `yaml:"backend" doc:"Backend of runs that name none; absent: local"`
	MaxWallSeconds           float64           `yaml:"max_wall_seconds" rule:"gt=0,lte=315360000" doc:"Ends a run that is not finished so many seconds after it left the queue, without the wait in a cluster's own; absent: no limit"`
	GraceSeconds             float64           `yaml:"grace_seconds" default:"20" rule:"gte=0,lte=86400" doc:"Seconds between asking a worker to stop and killing it"`
	HeartbeatTimeoutS        float64           `yaml:"heartbeat_timeout_s" default:"120" rule:"gte=1,lte=86400" doc:"Seconds without a word from an agent after which its run fails; a backend's own wins"`
	MaxPredictionsMB         int64             `yaml:"max_predictions_mb" default:"512" rule:"gt=0,lte=1048576" doc:"Largest predictions file that the server takes"`
	Writeback                Writeback         `yaml:"writeback" doc:"Which predictions are shown to annotators"`
	AutoRetrain              AutoRetrain       `yaml:"auto_retrain" doc:"Training by itself as labels come in"`
	Backends                 Backends          `yaml:"backends" doc:"Places to train, by name"`
	RetainRuns               int               `yaml:"retain_runs" default:"5" rule:"gte=1,lte=1000000" doc:"How many of the newest runs keep their files; a run with live predictions always does"`
	MaxConcurrentRuns        MaxConcurrentRuns `yaml:"max_concurrent_runs" default:"1" doc:"Runs at one time: a number in all, or a map of backends (default: those not named) to numbers"`
	SplitSeed                int64             `yaml:"split_seed" default:"0" doc:"Seed of the split"`
	Splits                   Splits            `yaml:"splits" default:"{train: 0.7, val: 0.15, test: 0.15}" doc:"Shares of the splits, in order; they are divided by their sum"`
	Aggregation              string            `yaml:"aggregation" default:"consensus" rule:"oneof=consensus majority" doc:"How several annotators' answers become one: consensus (Dawid-Skene) or majority"`
	TrainOnAcceptedPrelabels bool              `yaml:"train_on_accepted_prelabels" doc:"Train on predictions that an annotator accepted untouched, too"`
	WarmWorker               WarmWorker        `yaml:"warm_worker" default:"auto" doc:"auto keeps an interpreter ready for local runs while the Training page is in use; false does not"`
	TrainersDir              string            `yaml:"trainers_dir" rule:"line" doc:"Folder of the study's own trainers, relative to the config file"`
	TrainingDir              string            `yaml:"training_dir" rule:"line" doc:"Folder of database, lock and runs, relative to the config file; absent: training below output_annotation_dir"`

	Device     string   `yaml:"device" default:"auto" rule:"device" doc:"Local runs: auto (CUDA, then Metal, then CPU), cpu, mps, cuda or cuda:N"`
	NumThreads int      `yaml:"num_threads" rule:"gt=0,lte=65536" doc:"Local runs: threads; absent: all cores"`
	MaxRAMMB   int64    `yaml:"max_ram_mb" rule:"gt=0,lte=1073741824" doc:"Local runs: memory that ends the worker when it passes it; absent: no limit"`
	Python     string   `yaml:"python" default:"python3" rule:"line" doc:"Local runs: the interpreter"`
	Packages   []string `yaml:"packages" rule:"line" doc:"Local runs: packages to install once into an environment of their own, as pip takes them"`
}

// Writeback says which predictions become pre-annotations (R8).
type Writeback struct {
	Schemas          []string `yaml:"schemas" doc:"Schemes whose predictions annotators see; none: predictions are kept and not shown"`
	IncludeUnlabeled bool     `yaml:"include_unlabeled" doc:"Predict the items that nobody has labelled"`
	MinConfidence    float64  `yaml:"min_confidence" default:"0" rule:"gte=0,lte=1" doc:"Predictions below it are not shown"`
	Field            string   `yaml:"field" default:"predictions" rule:"line" doc:"Field of the item that holds them"`
	OnlyIfBetter     bool     `yaml:"only_if_better" doc:"Publish a run only when it beats the published one on the same held-out items"`
}

// AutoRetrain starts runs by itself (R9).
type AutoRetrain struct {
	Enabled         bool           `yaml:"enabled" doc:"Train again as labels come in"`
	Trainer         string         `yaml:"trainer" rule:"line" doc:"Name of the trainer"`
	Schemas         []string       `yaml:"schemas" doc:"Schemes to train, the main one first"`
	Backend         string         `yaml:"backend" doc:"Backend of these runs; absent: model_training.backend"`
	Fallback        string         `yaml:"fallback" doc:"Backend to use when the first cannot start a run"`
	UpdateFrequency int            `yaml:"update_frequency" default:"25" rule:"gte=1,lte=1000000000" doc:"New annotations that start a run"`
	MinIntervalS    float64        `yaml:"min_interval_s" default:"600" rule:"gte=0,lte=315360000" doc:"Least seconds between two runs"`
	QuietHours      string         `yaml:"quiet_hours" rule:"quiet_hours" doc:"Local time in which no run starts, e.g. 22:00-06:00"`
	Params          map[string]any `yaml:"params" doc:"Parameters of the trainer"`
}

// Backends are the backends of a config in the order they are written.
type Backends []Backend

// ByName finds a backend of the config. The local one, which needs no entry, is not among them.
func (b Backends) ByName(name string) (Backend, bool) {
	for _, x := range b {
		if x.Name == name {
			return x, true
		}
	}
	return Backend{}, false
}

// BackendNames lists the names that a run may give: the local backend first, then those of the config.
func (m ModelTraining) BackendNames() []string {
	names := []string{LocalBackend}
	for _, b := range m.Backends {
		if b.Name != LocalBackend { // a config that takes the name is refused, and judged to its end first
			names = append(names, b.Name)
		}
	}
	return names
}

// DefaultBackend is the name of the backend of runs that name none.
func (m ModelTraining) DefaultBackend() string {
	if m.Backend == "" {
		return LocalBackend
	}
	return m.Backend
}

// RetrainBackend is the name of the backend of runs that auto-retrain starts.
func (m ModelTraining) RetrainBackend() string {
	if m.AutoRetrain.Backend != "" {
		return m.AutoRetrain.Backend
	}
	return m.DefaultBackend()
}

// LocalBackend is the name of the backend that every config has: this machine.
const LocalBackend = string(api.BackendLocal)

// Splits are the shares of the items, in the order they are written, which the split rule depends on.
type Splits []Split

// Split is the share of one split.
type Split struct {
	Name     string
	Fraction float64
}

// MaxConcurrentRuns limits the runs at one time (S4): in all, or for each backend. With PerBackend there is no total.
type MaxConcurrentRuns struct {
	Total      int
	PerBackend map[string]int
}

// Places is how many runs a backend may have at one time; shared says that all backends count together.
func (m MaxConcurrentRuns) Places(backend string) (n int, shared bool) {
	if m.PerBackend == nil {
		return max(m.Total, 1), true
	}
	if n, ok := m.PerBackend[backend]; ok {
		return n, false
	}
	if n, ok := m.PerBackend["default"]; ok {
		return n, false
	}
	return 1, false
}

// WarmWorker is auto or false.
type WarmWorker string

// The values of WarmWorker.
const (
	WarmWorkerAuto WarmWorker = "auto"
	WarmWorkerOff  WarmWorker = "false"
)
