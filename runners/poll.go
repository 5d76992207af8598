package runners

import (
	"context"
	"fmt"
	"time"

	"potato/api"
	"potato/store"
)

// PollOptions are what the runner of agent backends stands on. DB may be nil for who has no database yet.
type PollOptions struct {
	DB  *store.DB
	Now func() time.Time
	// Closed says why agents on other machines cannot reach this server, and what to do about it; empty when they can.
	Closed string
	// Config is the config's path, for commands that a check prints.
	Config string
}

// Poll is the runner of agent backends: it reaches no machine. An agent asked for the run before it is started here, works
// on it by itself and tells the desk.
type Poll struct{ o PollOptions }

// NewPoll makes the runner of agent backends.
func NewPoll(o PollOptions) *Poll {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Poll{o: o}
}

// Start implements Runner. There is nothing to start: the agent asks for the bundle when it wants it.
func (p *Poll) Start(ctx context.Context, j Job) (api.Handle, error) {
	if err := ctx.Err(); err != nil {
		return api.Handle{}, err
	}
	j.Step("waiting for the agent on " + j.Host)
	h := api.Handle{Backend: j.Backend, Host: j.Host}
	return h, j.Save(h)
}

// Follow implements Runner: the agent tells the desk, and the desk tells us when that was the last word.
func (p *Poll) Follow(ctx context.Context, j Job, _ api.Handle) error {
	select {
	case <-j.Ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Stop implements Runner. Nobody but the agent can reach the machine. An agent that comes back hears that the run is over
// and ends the worker; one that was cut off does so by itself after 300 s (G5).
func (p *Poll) Stop(_ context.Context, j Job, h api.Handle) error {
	select {
	case <-j.Ended:
		return nil
	default:
	}
	return api.Unavailablef("worker_may_run", "the worker may still run on %s", h.Host)
}

// awayAfter is the silence after which a check doubts that an agent still asks for work.
const awayAfter = 2 * time.Minute

// Check implements Runner: the token's record, and who came with it (G7).
func (p *Poll) Check(ctx context.Context, o CheckOptions) api.CheckReport {
	r := &report{api.CheckReport{
		Backend: o.Backend, Type: api.BackendAgent, OK: true, Items: []api.CheckItem{}, GPUs: []api.GPU{}, MissingPackages: []api.MissingPackages{},
	}}
	r.Summary = p.checkToken(ctx, r, o.Backend)
	if o.Trainer != "" {
		r.add(api.CheckOK, "trainer", "", "whether Trainer '%s' has its packages there is known on the training machine alone: its agent lists its trainers when it starts", o.Trainer)
	}
	if p.o.Closed != "" {
		r.add(api.CheckWarn, "address", "open it with --host 0.0.0.0 and a good admin_api_key, or put a proxy in front of it", "%s", p.o.Closed)
	}
	return r.CheckReport
}

func (p *Poll) checkToken(ctx context.Context, r *report, backend string) (summary string) {
	const none = "no token issued yet"
	register := fmt.Sprintf("potato training register %s %s", backend, p.config())
	if p.o.DB == nil {
		r.add(api.CheckFail, "token", register, none)
		return none
	}
	token, err := p.o.DB.TokenOf(ctx, backend)
	var agents []api.AgentSeen
	if err == nil {
		agents, err = p.o.DB.AgentsOf(ctx, backend)
	}
	if err != nil {
		text, hint := asText(err)
		r.add(api.CheckFail, "token", hint, "%s", text)
		return "the token's record cannot be read"
	}
	if token == nil {
		r.add(api.CheckFail, "token", register, none)
		return none
	}
	start := fmt.Sprintf("start `potato training agent --server URL --backend %s` on the training machine", backend)
	created := "created " + p.at(token.CreatedAt)
	if token.LastSeen == nil {
		r.add(api.CheckWarn, "token", start, "%s, never used, last_seen: never", created)
		return "a token is issued and no agent has used it yet"
	}
	if token.FirstUsedAt != nil {
		created += ", first used " + p.at(*token.FirstUsedAt)
	}
	r.add(api.CheckOK, "token", "", "%s, last_seen: %s", created, p.at(*token.LastSeen))
	for _, a := range agents {
		r.add(api.CheckOK, "agent", "", "%s on %s, version %s, last_seen: %s", a.AgentID, a.Host, a.Version, p.at(a.LastSeen))
	}
	if silence := p.since(*token.LastSeen); silence > awayAfter {
		r.add(api.CheckWarn, "agent", start+"; runs wait for it in the queue", "no agent has been heard of for %s", silence.Round(time.Second))
	}
	return "last_seen: " + p.at(*token.LastSeen)
}

func (p *Poll) config() string {
	if p.o.Config == "" {
		return "config.yaml"
	}
	return p.o.Config
}

func (p *Poll) since(t float64) time.Duration {
	return p.o.Now().Sub(time.UnixMilli(int64(t * 1000)))
}

// at is a time for people: as a date, and how long ago that is.
func (p *Poll) at(t float64) string {
	return fmt.Sprintf("%s (%s ago)", time.UnixMilli(int64(t*1000)).UTC().Format("2006-01-02 15:04:05 UTC"), max(p.since(t), 0).Round(time.Second))
}
