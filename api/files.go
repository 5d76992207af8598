package api

// Artifact is one file of a run's model.
type Artifact struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Where  string `json:"where" enum:"server,host"`
}

// ArtifactList lists a run's files.
type ArtifactList struct {
	Artifacts []Artifact `json:"artifacts"`
}

// LogLine is one line of a run's log.
type LogLine struct {
	N     int64   `json:"n" doc:"From 1"`
	T     float64 `json:"t" doc:"0 when the file has no times"`
	Level string  `json:"level"`
	Text  string  `json:"text"`
}

// LogLines is a stretch of a log.
type LogLines struct {
	Lines []LogLine `json:"lines"`
	Total int64     `json:"total" doc:"Lines in the whole log, or matching the search"`
}

// Status is what the training server is doing.
type Status struct {
	State       RunStatus `json:"state" enum:"idle,queued,building,running,evaluating,success,error,cancelled" doc:"Of the run named; idle when none is under way"`
	RunID       *RunID    `json:"run_id" nullable:"true"`
	Running     []Run     `json:"running"`
	Queued      []Run     `json:"queued"`
	ProjectName string    `json:"project_name"`
	SkipReason  string    `json:"skip_reason" doc:"Why auto-retrain does not train now"`
	Version     string    `json:"version"`
	Warnings    []string  `json:"warnings" doc:"What the admin should know about this server"`
}

// AutoRetrain is the state of automatic retraining (R9).
type AutoRetrain struct {
	Enabled         bool     `json:"enabled"`
	Trainer         string   `json:"trainer"`
	Schemas         []string `json:"schemas"`
	Backend         string   `json:"backend"`
	UpdateFrequency int      `json:"update_frequency"`
	MinIntervalS    float64  `json:"min_interval_s"`
	NewAnnotations  int      `json:"new_annotations" doc:"Since the last run that auto-retrain started"`
	SkipReason      string   `json:"skip_reason" doc:"Why it does not train now, as a sentence; empty when it is about to"`
}

// SessionRequest signs a browser in.
type SessionRequest struct {
	APIKey string `json:"api_key" minLength:"1" maxLength:"1000"`
}
