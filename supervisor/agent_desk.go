package supervisor

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"potato/api"
	"potato/runners"
	"potato/store"
)

// AgentDesk is the desk of an agent elsewhere: it sees the runs of its backend and no others, and what it says is bounded.
type AgentDesk struct {
	desk
	who Agent
}

// AgentDesk is the desk of who shows an agent's token.
func (s *Supervisor) AgentDesk(who Agent) AgentDesk {
	return AgentDesk{desk: desk{s: s, backend: who.Backend, run: who.Run}, who: who}
}

// What an agent may send at once. A report holds many events, of which a long one is cut.
const (
	maxReportBytes = 1 << 20
	maxFinishLines = 200
)

// Progress takes events from an agent elsewhere.
func (d AgentDesk) Progress(ctx context.Context, id api.RunID, lease string, events []api.Event) (api.Answer, error) {
	a, err := d.speaks(ctx, id, lease)
	if err != nil {
		return api.Answer{}, err
	}
	size := 0
	for i := range events {
		n, err := bound(&events[i])
		if err != nil {
			return api.Answer{}, err
		}
		if size += n; size > maxReportBytes && i > 0 {
			return api.Answer{}, api.TooLargef("report_too_large", "The events of one report are over %d MiB", maxReportBytes>>20).
				WithHint("send fewer events at once")
		}
	}
	d.lookAtClock(ctx, a, events)
	return d.desk.Progress(ctx, api.Job{RunID: id, Lease: lease}, events)
}

// Heartbeat hears that an agent elsewhere lives.
func (d AgentDesk) Heartbeat(ctx context.Context, id api.RunID, lease string) (api.Answer, error) {
	a, err := d.speaks(ctx, id, lease)
	if err != nil {
		return api.Answer{}, err
	}
	defer func() { d.s.seen.note(d.who, a.agentID, "", "") }() // the answer is kept back for long
	timeout := d.s.heartbeatTimeout(d.backend).Seconds()
	return d.desk.Heartbeat(ctx, api.Job{RunID: id, Lease: lease, HeartbeatTimeoutS: timeout})
}

// Finish takes an agent's last word.
func (d AgentDesk) Finish(ctx context.Context, id api.RunID, lease string, f api.Finish) error {
	if a := d.s.activeRun(id); a != nil {
		d.s.seen.note(d.who, a.agentID, "", "")
		f.Host = cmp.Or(f.Host, a.host)
	}
	for _, text := range []*string{&f.ErrorCode, &f.Error, &f.Hint, &f.ArtifactURI, &f.Host} {
		*text = api.Printable(*text)
	}
	f.Stderr = f.Stderr[max(0, len(f.Stderr)-maxFinishLines):]
	for i, line := range f.Stderr {
		f.Stderr[i] = api.Printable(line)
	}
	for name, value := range f.Environment {
		f.Environment[name] = api.Printable(value)
	}
	return d.desk.Finish(ctx, api.Job{RunID: id, Lease: lease}, f)
}

// speaks finds the run that the agent has, and notes that it was heard of.
func (d AgentDesk) speaks(ctx context.Context, id api.RunID, lease string) (*active, error) {
	a, err := d.holder(ctx, api.Job{RunID: id, Lease: lease})
	if err == nil {
		d.s.seen.note(d.who, a.agentID, "", "")
	}
	return a, err
}

// bound cuts an event that is longer than one may be and returns its length. A result always comes through: figures that
// the server can do without are left out.
func bound(e *api.Event) (int, error) {
	n, err := eventLen(*e)
	if err != nil || n <= api.MaxEventBytes {
		return n, err
	}
	if e.Event != api.EventResult {
		seq := e.Seq
		*e = shortened(*e, n)
		e.Seq = seq
		return eventLen(*e)
	}
	for _, drop := range []func(){
		func() { e.LabelOrder = nil }, func() { e.MetricsBySchema = nil }, func() { e.Packages = nil }, func() { e.Metrics = nil },
		func() {
			*e = api.Event{V: e.V, Event: e.Event, T: e.T, Seq: e.Seq, Attempt: e.Attempt, Status: e.Status, PredictionsFile: api.Printable(e.PredictionsFile)}
		},
	} {
		drop()
		e.Notes = []string{"The result was longer than an event may be, so parts of it were left out"}
		if n, err = eventLen(*e); err != nil || n <= api.MaxEventBytes {
			break
		}
	}
	return n, err
}

// eventLen is the length of an event as its sender counts: without what Go escapes for HTML.
func eventLen(e api.Event) (int, error) {
	b, err := encodeEvent(e)
	return len(b), err
}

// lookAtClock warns once when an agent's clock is far from ours: times in the log are then the agent's. The first event is
// sent at once, so it is young; limits never run by it (T40).
func (d AgentDesk) lookAtClock(ctx context.Context, a *active, events []api.Event) {
	if len(events) == 0 || events[0].Seq != 1 {
		return
	}
	skew := time.Duration((events[0].T - d.s.seconds()) * float64(time.Second))
	if math.Abs(skew.Seconds()) < runners.MaxSkew.Seconds() {
		return
	}
	word := "ahead of"
	if skew < 0 {
		word = "behind"
	}
	text := fmt.Sprintf("The clock of %s is %s %s this server's; times in the log are by its own clock", a.host, skew.Abs().Round(time.Second), word)
	if err := d.s.update(ctx, a.id, store.RunUpdate{Warn: []string{text}}); err != nil {
		d.s.log.Warn("cannot store a warning", "run", a.id, "err", err)
	}
}
