package api

// ClaimRequest is an agent asking for work.
type ClaimRequest struct {
	AgentID string `json:"agent_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9._-]+$" doc:"Names this agent; kept on its disk, so that it is the same after a restart"`
	ClaimID string `json:"claim_id" minLength:"1" maxLength:"100" pattern:"^[A-Za-z0-9._-]+$" doc:"Names this question: asked again after a lost answer, it gets the same job"`
	Host    string `json:"host" maxLength:"255"`
	Version string `json:"version" maxLength:"100" doc:"Of the agent's program"`
	Backend string `json:"backend,omitempty" maxLength:"100" doc:"The backend that the agent takes its token for; of another one the token is refused"`
	WaitS   int    `json:"wait_s,omitempty" minimum:"0" maximum:"30" doc:"How long the answer may be kept back while there is no work"`
	Held    []Held `json:"held,omitempty" maxItems:"100" doc:"Runs whose job directories this agent has; one that is still its own comes back as the job. A held run that does not come back is no longer the agent's"`
}

// Held is a run that an agent has the job directory of.
type Held struct {
	RunID RunID  `json:"run_id" pattern:"^[0-9]{8}T[0-9]{6}-[0-9a-f]{6}$"`
	Lease string `json:"lease" maxLength:"100"`
}

// ProgressReport hands over events; see Event for Seq.
type ProgressReport struct {
	Events []Event `json:"events" maxItems:"5000" doc:"Contiguous by seq. Those that the server has are ignored; from the first gap on none is taken"`
}

// UploadOffset says how much of an upload the server has.
type UploadOffset struct {
	Offset int64 `json:"offset" doc:"Bytes"`
	Done   bool  `json:"done" doc:"The whole was checked and stored"`
}
