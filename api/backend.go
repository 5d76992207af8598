package api

// BackendType is how a run gets to its machine (S2).
type BackendType string

// The types of backends.
const (
	BackendLocal BackendType = "local"
	BackendSSH   BackendType = "ssh"
	BackendSlurm BackendType = "slurm"
	BackendAgent BackendType = "agent"
)

// Backend is a place where runs train.
type Backend struct {
	Name        string            `json:"name"`
	Type        BackendType       `json:"type" enum:"local,ssh,slurm,agent"`
	Host        string            `json:"host" doc:"Machine the server logs in to; empty for local and agent"`
	Label       string            `json:"label" example:"gpu-server (ssh to gpu.example.org)"`
	Description string            `json:"description"`
	Default     bool              `json:"default" doc:"Runs train here when they name no backend"`
	Available   bool              `json:"available" doc:"This server can start runs there"`
	Reason      string            `json:"reason" doc:"Why not, when it cannot"`
	Agent       *BackendAgentSeen `json:"agent,omitempty" doc:"Only for agent backends"`
}

// BackendAgentSeen tells when an agent of the backend was last heard of.
type BackendAgentSeen struct {
	Registered bool        `json:"registered" doc:"A token was issued"`
	LastSeen   *float64    `json:"last_seen" nullable:"true" doc:"When an agent with the present token was last heard of"`
	Agents     []AgentSeen `json:"agents" doc:"Those that asked for work in the last 90 days, the one heard of last first"`
}

// AgentSeen is an agent that asked for work, by its own words.
type AgentSeen struct {
	AgentID  string  `json:"agent_id"`
	Host     string  `json:"host"`
	Version  string  `json:"version" doc:"Of the agent's program"`
	LastSeen float64 `json:"last_seen"`
}

// IssuedToken is a new token of an agent backend. It is shown this once: only its hash is kept.
type IssuedToken struct {
	Backend   string  `json:"backend"`
	Token     string  `json:"token"`
	CreatedAt float64 `json:"created_at"`
	Replaced  bool    `json:"replaced" doc:"It took the place of an earlier one, which is refused from now on"`
}

// MenuLabel is a backend's text in menus (N4).
func (b Backend) MenuLabel() string {
	switch b.Type {
	case BackendLocal:
		return b.Name + " (this machine)"
	case BackendSSH:
		return b.Name + " (ssh to " + b.Host + ")"
	case BackendSlurm:
		return b.Name + " (slurm on " + b.Host + ")"
	default:
		return b.Name + " (" + string(b.Type) + ")"
	}
}

// BackendList lists the backends, local first.
type BackendList struct {
	Backends []Backend `json:"backends"`
}
