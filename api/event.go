package api

// EventType is the kind of a worker's event line.
type EventType string

// The events of the worker protocol, version 1.
const (
	EventStatus   EventType = "status"
	EventProgress EventType = "progress"
	EventMetric   EventType = "metric"
	EventLog      EventType = "log"
	EventArtifact EventType = "artifact"
	EventResult   EventType = "result"
	EventError    EventType = "error"
)

// StatePending is the state of a run's agent while the job that it has submitted waits in a cluster's own queue.
const StatePending = "pending"

// Both sides bound what a worker may say; the server does not trust that an agent has.
const (
	MaxEventBytes = 64 << 10  // of one event as JSON; a result may be longer
	MaxLogBytes   = 100 << 20 // of one of a run's logs
)

// Event is one line of a run's events.jsonl: what a worker or an agent said. Which fields are set depends on Event.
// Read over HTTP it carries Seq and the attempt it belongs to. Seq grows over the run from 1; lines of stdout, stderr and
// agent, which lie in files of their own, take numbers as well.
type Event struct {
	V       int       `json:"v" doc:"Version of the protocol, 1"`
	Event   EventType `json:"event" enum:"status,progress,metric,log,artifact,result,error"`
	T       float64   `json:"t" doc:"When it happened by the sender's clock, seconds since 1970; for display"`
	Seq     int64     `json:"seq,omitempty" doc:"Place among all that was reported of the run, from 1. An agent numbers its reports without gaps; the numbers of lines that go to stdout, stderr and agent are missing among the events"`
	Attempt int       `json:"attempt,omitempty" doc:"From 1"`

	State string `json:"state,omitempty" doc:"status: the worker's own state; pending: its job waits in a cluster's queue"`
	Step  any    `json:"step,omitempty" doc:"status: the step line, a string; metric: the training step, a number"`

	Phase   string   `json:"phase,omitempty" doc:"progress"`
	Current *float64 `json:"current,omitempty" doc:"progress"`
	Total   *float64 `json:"total,omitempty" doc:"progress"`
	ETA     *float64 `json:"eta_s,omitempty" doc:"progress: seconds left"`

	Split  string   `json:"split,omitempty" doc:"metric: train, val or test"`
	Name   string   `json:"name,omitempty" doc:"metric, e.g. loss"`
	Value  *float64 `json:"value,omitempty" doc:"metric"`
	Schema string   `json:"schema,omitempty" doc:"The scheme it speaks of, when the run trains several"`

	Level  string `json:"level,omitempty" doc:"log: info, warning or error"`
	Msg    string `json:"msg,omitempty" doc:"log: the line"`
	Source string `json:"source,omitempty" doc:"log: stdout, stderr or agent when the line belongs into the file of that name"`

	Path  string `json:"path,omitempty" doc:"artifact: relative to artifacts/"`
	Bytes *int64 `json:"bytes,omitempty" doc:"artifact"`

	Status          string                         `json:"status,omitempty" doc:"result: success"`
	ModelVersion    string                         `json:"model_version,omitempty" doc:"result"`
	Metrics         map[string]*float64            `json:"metrics,omitempty" doc:"result: figures of the first scheme, on training rows only"`
	MetricsBySchema map[string]map[string]*float64 `json:"metrics_by_schema,omitempty" doc:"result"`
	LabelOrder      []string                       `json:"label_order,omitempty" doc:"result"`
	Notes           []string                       `json:"notes,omitempty" doc:"result"`
	PredictionsFile string                         `json:"predictions_file,omitempty" doc:"result: relative to artifacts/"`
	NPredictions    *int64                         `json:"n_predictions,omitempty" doc:"result"`
	Device          string                         `json:"device,omitempty" doc:"result: what it trained on"`
	Python          string                         `json:"python,omitempty" doc:"result: version of the interpreter"`
	Packages        map[string]string              `json:"packages,omitempty" doc:"result: versions"`

	Code        string `json:"code,omitempty" doc:"error"`
	Message     string `json:"message,omitempty" doc:"error"`
	InstallHint string `json:"install_hint,omitempty" doc:"error"`
}

// StepText is the step line of a status event, empty for every other.
func (e Event) StepText() string {
	if s, ok := e.Step.(string); ok && e.Event == EventStatus {
		return s
	}
	return ""
}

// EventList is a stretch of a run's events.
type EventList struct {
	Events []Event `json:"events"`
	Next   int64   `json:"next" doc:"Sequence number to ask from next"`
}
