package api

import (
	"crypto/rand"
	"encoding/hex"
	"regexp"
	"time"
)

// RunID names a run: UTC time to the second and six random hex digits, e.g. 20261129T192252-d3d870.
type RunID string

var runIDPattern = regexp.MustCompile(`^\d{8}T\d{6}-[0-9a-f]{6}$`)

// NewRunID makes an id for a run created at t.
func NewRunID(t time.Time) RunID {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails
	return RunID(t.UTC().Format("20060102T150405") + "-" + hex.EncodeToString(b[:]))
}

// Valid reports whether the id has the form of one; only valid ids are ever joined into paths.
func (id RunID) Valid() bool { return runIDPattern.MatchString(string(id)) }

// RunStatus is the state of a run (R1). It is the server's own: a worker's status events change the step only.
type RunStatus string

// The states of a run, in order; the last three are final.
const (
	RunQueued     RunStatus = "queued"
	RunBuilding   RunStatus = "building"
	RunRunning    RunStatus = "running"
	RunEvaluating RunStatus = "evaluating"
	RunSuccess    RunStatus = "success"
	RunError      RunStatus = "error"
	RunCancelled  RunStatus = "cancelled"
)

// RunStatuses lists the states of a run in their order.
func RunStatuses() []RunStatus {
	return []RunStatus{RunQueued, RunBuilding, RunRunning, RunEvaluating, RunSuccess, RunError, RunCancelled}
}

// Final reports whether the run has ended.
func (s RunStatus) Final() bool { return s == RunSuccess || s == RunError || s == RunCancelled }

// Trigger says what started a run.
type Trigger string

// The triggers of runs.
const (
	TriggerPage Trigger = "page"
	TriggerAPI  Trigger = "api"
	TriggerAuto Trigger = "auto"
)

// Metrics are a run's flat figures, e.g. test_accuracy. A figure that cannot be given is null, with its reason in the
// run's warnings.
type Metrics map[string]*float64

// Run is one training run: what was asked for, where it stands and what came of it (N2).
// Times are seconds since 1970, UTC.
type Run struct {
	RunID           RunID              `json:"run_id" doc:"Identifies the run" example:"20261129T192252-d3d870"`
	Status          RunStatus          `json:"status" enum:"queued,building,running,evaluating,success,error,cancelled"`
	Trainer         string             `json:"trainer"`
	SchemaNames     []string           `json:"schema_names" doc:"The annotation schemes trained, the first being the main one"`
	Kinds           []SchemeKind       `json:"kinds" doc:"Kind of each scheme, in the same order"`
	Backend         string             `json:"backend" doc:"Name of the backend the run trains on"`
	Host            string             `json:"host" doc:"Machine that trained it; empty until known"`
	Device          string             `json:"device" doc:"Device it trained on, e.g. cpu, cuda:0; empty until known"`
	Trigger         Trigger            `json:"trigger" enum:"page,api,auto"`
	CreatedBy       string             `json:"created_by" doc:"Who started it: admin, or auto-retrain"`
	CreatedAt       float64            `json:"created_at"`
	StartedAt       *float64           `json:"started_at" nullable:"true" doc:"When it left the queue"`
	FinishedAt      *float64           `json:"finished_at" nullable:"true"`
	Duration        *float64           `json:"duration" nullable:"true" doc:"Seconds from leaving the queue to the end, or to now"`
	SchedulerWaitS  float64            `json:"scheduler_wait_s" doc:"Those of these seconds that its job waited in a cluster's own queue; they do not count against max_wall_seconds"`
	NTrain          int                `json:"n_train"`
	NVal            int                `json:"n_val"`
	NTest           int                `json:"n_test"`
	NUnlabeled      int                `json:"n_unlabeled" doc:"Unlabelled items it predicts"`
	SplitSeed       int64              `json:"split_seed"`
	Params          map[string]any     `json:"params"`
	Metrics         Metrics            `json:"metrics" doc:"Flat figures of the first scheme: val_* and test_* are held-out scores computed by the server, train_* are on training rows"`
	MetricsBySchema map[string]Metrics `json:"metrics_by_schema" doc:"The same for every scheme of the run"`
	Error           string             `json:"error" doc:"What went wrong, as a sentence; empty when nothing did"`
	ErrorCode       string             `json:"error_code" doc:"Stable code of the error"`
	Hint            string             `json:"hint" doc:"What to do about the error"`
	Message         string             `json:"message" doc:"How the run stands, as a sentence"`
	Warnings        []string           `json:"warnings" doc:"What a reader of the result should know"`
	ModelVersion    string             `json:"model_version"`
	BundleDigest    string             `json:"bundle_digest" doc:"SHA-256 over the bundle's files"`
	ArtifactURI     string             `json:"artifact_uri" doc:"Where the model's files are: a path of this server, or host:directory"`
	Step            string             `json:"step" doc:"What the run is doing right now"`
	Progress        *Progress          `json:"progress"`
	Attempt         int                `json:"attempt" doc:"From 1; grows when a scheduler starts the run again"`
	Writeback       *Writeback         `json:"writeback" doc:"What became of the predictions; null until they were published"`
	NPublished      int                `json:"n_published" doc:"Predictions of this run that annotators see now; a later run or a retraction lowers it"`
	Queue           *Queue             `json:"queue" doc:"Place in the queue; null once the run has left it"`
	CancelRequested bool               `json:"cancel_requested" doc:"A cancel was asked for and has not taken effect yet"`
	Environment     map[string]string  `json:"environment" doc:"Interpreter and package versions of the machine that trained"`
}

// Progress is how far the current phase of a run has come.
type Progress struct {
	Phase   string   `json:"phase" example:"fit"`
	Current float64  `json:"current"`
	Total   float64  `json:"total"`
	ETA     *float64 `json:"eta_s" nullable:"true" doc:"Seconds left, when the worker can tell"`
}

// Queue tells a waiting run's place and what it waits for.
type Queue struct {
	Position   int    `json:"position" doc:"From 1"`
	WaitingFor string `json:"waiting_for" doc:"In words: the run ahead, an agent, the scheduler"`
}

// Writeback counts what became of a run's predictions when they were published (R8).
type Writeback struct {
	NRead                    int      `json:"n_read"`
	NWritten                 int      `json:"n_written"`
	NSkippedTrainSplit       int      `json:"n_skipped_train_split"`
	NSkippedSchemaNotEnabled int      `json:"n_skipped_schema_not_enabled"`
	NSkippedRejected         int      `json:"n_skipped_rejected"`
	NSkippedLowConfidence    int      `json:"n_skipped_low_confidence"`
	NSkippedMissingItem      int      `json:"n_skipped_missing_item"`
	NSkippedUnknownLabel     int      `json:"n_skipped_unknown_label"`
	SchemasEnabled           []string `json:"schemas_enabled"`
	Warnings                 []string `json:"warnings"`
}

// RunRequest asks for a run (A2). An absent backend is the config's default.
type RunRequest struct {
	Trainer string         `json:"trainer" minLength:"1" maxLength:"200" doc:"Name of a trainer, see listTrainers"`
	Schemas []string       `json:"schemas" minItems:"1" maxItems:"100" doc:"Annotation schemes to train, the main one first"`
	Backend string         `json:"backend,omitempty" maxLength:"200" doc:"Backend to train on; absent: the config's default"`
	Params  map[string]any `json:"params,omitempty" doc:"Parameters of the trainer"`

	AcceptLicence bool `json:"accept_licence,omitempty" doc:"The annotation tool's own training asks for it with some trainers; here it is taken and changes nothing"`
}

// RunStarted answers a RunRequest: the run exists; started is false when it waits in the queue.
type RunStarted struct {
	RunID   RunID  `json:"run_id"`
	Started bool   `json:"started" doc:"False when the run waits in the queue"`
	Queue   *Queue `json:"queue,omitempty" doc:"Its place, when it waits"`
}

// RunList is a page of runs, newest first unless sorted otherwise.
type RunList struct {
	Runs []Run  `json:"runs"`
	Next string `json:"next,omitempty" doc:"Cursor of the next page; absent on the last"`
}
