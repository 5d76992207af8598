package api

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
