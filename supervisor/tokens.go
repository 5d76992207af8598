package supervisor

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"potato/api"
	"potato/project"
	"potato/store"
)

// Agent is who shows a token: it may ask for runs of the backend and speak for those that it got.
type Agent struct {
	Backend string
	Run     api.RunID // the one run that a run's token speaks for; empty with a backend's token
	SHA256  string    // of the token
}

// Register issues a token for an agent backend. The one before it is refused from this moment on, also for runs under way.
// It needs the config and the database alone, so that it works whether or not a server runs.
func Register(ctx context.Context, c *project.Config, db *store.DB, backend string) (api.IssuedToken, error) {
	b, ok := c.ModelTraining.Backends.ByName(backend)
	switch {
	case backend == project.LocalBackend:
		return api.IssuedToken{}, api.Conflictf("not_an_agent_backend", "local is this machine and needs no token").
			WithHint("tokens are for backends of type agent")
	case !ok:
		return api.IssuedToken{}, api.NotFoundf("unknown_backend", "the config names no backend %q", backend).
			WithHint("the backends are: %s", backendNames(c))
	case b.Type != api.BackendAgent:
		return api.IssuedToken{}, api.Conflictf("not_an_agent_backend", "%s is a backend of type %s, which needs no token", backend, b.Type).
			WithHint("tokens are for backends of type agent")
	}
	before, err := db.TokenOf(ctx, backend)
	if err != nil {
		return api.IssuedToken{}, err
	}
	token := newToken()
	issued, err := db.IssueToken(ctx, backend, hashOf(token))
	if err != nil {
		return api.IssuedToken{}, err
	}
	return api.IssuedToken{Backend: backend, Token: token, CreatedAt: issued.CreatedAt, Replaced: before != nil}, nil
}

// Register is the function of that name for a server's own study.
func (s *Supervisor) Register(ctx context.Context, backend string) (api.IssuedToken, error) {
	issued, err := Register(ctx, s.o.Config, s.db, backend)
	if err == nil {
		s.log.Info("a token was issued", "backend", backend, "replaced", issued.Replaced)
	}
	return issued, err
}

// newToken is 256 random bits; the name before them lets scanners of repositories and logs know it for a secret.
func newToken() string { return "potato_" + rand.Text() + rand.Text() }

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// Authenticate finds out whose token this is. It asks the database each time: a token may be replaced by a command while
// the server runs.
func (s *Supervisor) Authenticate(ctx context.Context, token string) (Agent, error) {
	unknown := api.Unauthenticatedf("token_unknown", "This token is not known").
		WithHint("`potato training register` prints a token; it goes into the header Authorization as Bearer TOKEN")
	if token == "" {
		return Agent{}, unknown
	}
	if who, ok := s.runTokens.of(hashOf(token)); ok {
		return who, nil
	}
	t, err := s.db.TokenByHash(ctx, hashOf(token))
	switch {
	case err != nil:
		return Agent{}, err
	case t == nil:
		return Agent{}, unknown
	case t.ReplacedAt != nil:
		return Agent{}, store.TokenRevoked()
	case !s.claimedByAgents(t.Backend):
		return Agent{}, api.Unauthenticatedf("token_unknown", "This token is for %s, which is no agent backend of the config any more", t.Backend).
			WithHint("add the backend to the config again and restart the server, or use another's token")
	}
	who := Agent{Backend: t.Backend, SHA256: t.SHA256}
	s.seen.note(who, "", "", "")
	return who, nil
}

// seenAgents gathers which agents were heard of, so that a thousand of them are one write every few seconds.
type seenAgents struct {
	mu  sync.Mutex
	now func() float64
	new map[seenKey]store.AgentSeen
}

type seenKey struct{ token, agentID string }

// note remembers that an agent was heard of; without an id it is the token alone that was used.
func (n *seenAgents) note(who Agent, agentID, host, version string) {
	if who.Run != "" {
		return // the server has started it itself
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	key := seenKey{who.SHA256, agentID}
	was := n.new[key]
	if host == "" {
		host, version = was.Host, was.Version
	}
	n.new[key] = store.AgentSeen{Token: who.SHA256, Backend: who.Backend, AgentID: agentID, Host: host, Version: version, At: n.now()}
}

func (n *seenAgents) take() []store.AgentSeen {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := make([]store.AgentSeen, 0, len(n.new))
	for _, a := range n.new {
		list = append(list, a)
	}
	clear(n.new)
	return list
}

// keepSeen stores which agents were heard of.
func (s *Supervisor) keepSeen(ctx context.Context) {
	list := s.seen.take()
	if len(list) == 0 {
		return
	}
	if err := s.db.SeeAgents(ctx, list); err != nil {
		s.log.Warn("cannot store when agents were last seen", "err", err)
	}
}

// seenLoop stores every few seconds which agents were heard of, and once more at the end.
func (s *Supervisor) seenLoop(ctx context.Context) {
	defer s.keepSeen(context.WithoutCancel(ctx))
	tick := time.NewTicker(2 * s.o.LimitEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			s.keepSeen(ctx)
		}
	}
}
