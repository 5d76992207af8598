package supervisor

import (
	"context"
	"crypto/subtle"
	"sync"

	"potato/api"
	"potato/store"
)

// runTokens are the tokens of agents that this server has started on other machines. Each speaks for one run, is replaced
// when the server goes there again, and dies with the run or the server: only the hash is kept, and in memory alone.
type runTokens struct {
	mu    sync.Mutex
	known map[string]Agent
}

func (t *runTokens) of(hash string) (Agent, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	who, ok := t.known[hash]
	return who, ok && subtle.ConstantTimeCompare([]byte(who.SHA256), []byte(hash)) == 1
}

// RunToken issues a token that speaks for a run until it is released. An earlier one of the run is of no use from now on.
func (s *Supervisor) RunToken(id api.RunID, backend string) (token string, release func()) {
	token = newToken()
	who := Agent{Backend: backend, Run: id, SHA256: hashOf(token)}
	t := &s.runTokens
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known == nil {
		t.known = map[string]Agent{}
	}
	for hash, other := range t.known {
		if other.Run == id {
			delete(t.known, hash)
		}
	}
	t.known[who.SHA256] = who
	return token, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.known, who.SHA256)
	}
}

// hold gives a run to the agent that this server has started for it.
func (s *Supervisor) hold(ctx context.Context, who Agent, q api.ClaimRequest) (*api.Job, error) {
	job, err := s.jobOf(ctx, who.Run)
	if err != nil || job == nil {
		return nil, err
	}
	return job, s.db.HoldRun(ctx, store.Lease{RunID: job.RunID, Lease: job.Lease, AgentID: q.AgentID, ClaimID: q.ClaimID, Host: q.Host})
}
