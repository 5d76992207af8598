package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"potato/api"
)

var _ Desk = (*api.Client)(nil)

// pollDesk is the server over HTTP as a polling agent uses it: what passes is also shown on the agent's own machine, and a
// run that was ended because the agent was told to leave says so.
type pollDesk struct {
	*api.Client
	p *poller

	mu      sync.Mutex
	step    string
	say     func(step string) error // into the log of the run whose bundle is fetched; nil: none is
	shownAt time.Time
	saidAt  time.Time
}

// showEvery is how often a transfer is shown on this machine.
const showEvery = 200 * time.Millisecond

type stepsKey struct{}

// withSteps lets a desk that needs long for a bundle say how far it is, from the goroutine that has called it.
func withSteps(ctx context.Context, say func(step string) error) context.Context {
	return context.WithValue(ctx, stepsKey{}, say)
}

func (p *poller) desk() *pollDesk {
	d := &pollDesk{p: p}
	client := *p.o.Client
	client.OnTransfer = d.transferred
	d.Client = &client
	return d
}

// Bundle implements Desk.
func (d *pollDesk) Bundle(ctx context.Context, job api.Job, dir string) (string, error) {
	say, _ := ctx.Value(stepsKey{}).(func(step string) error)
	d.listen(say)
	defer d.listen(nil)
	return d.Client.Bundle(ctx, job, dir)
}

func (d *pollDesk) listen(say func(step string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.say, d.saidAt = say, time.Now() // a short download needs no words
}

// Progress implements Desk.
func (d *pollDesk) Progress(ctx context.Context, job api.Job, events []api.Event) (api.Answer, error) {
	for _, e := range events {
		d.show(job.RunID, e)
	}
	return d.Client.Progress(ctx, job, events)
}

// Finish implements Desk.
func (d *pollDesk) Finish(ctx context.Context, job api.Job, f api.Finish) error {
	if f.Cancelled && f.ErrorCode == "" && d.p.stopped() {
		f.ErrorCode, f.Error = "cancelled", fmt.Sprintf("The agent on %s was stopped while it worked on the run", hostname())
		f.Hint = "start the agent again, then the run"
	}
	if err := d.Client.Finish(ctx, job, f); err != nil {
		return err
	}
	switch log := d.p.log.With("run", job.RunID); {
	case f.Cancelled:
		log.Info("the run was cancelled")
	case f.ErrorCode != "":
		log.Info("the run failed", "code", f.ErrorCode, "error", f.Error, "hint", f.Hint)
	default:
		log.Info("the run is done", "artifacts", f.ArtifactURI)
	}
	return nil
}

func (d *pollDesk) show(run api.RunID, e api.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	text := e.StepText()
	switch {
	case text != "":
		d.step = text
	case e.Event == api.EventProgress && e.Current != nil && e.Total != nil:
		text = strings.TrimSpace(fmt.Sprintf("%s %g of %g", e.Phase, *e.Current, *e.Total))
		if d.step != "" {
			text = d.step + ", " + text
		}
	default:
		return
	}
	d.p.report(run, text)
}

func (d *pollDesk) transferred(run api.RunID, what string, done, total int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	if now.Sub(d.shownAt) < showEvery && done != total {
		return
	}
	d.shownAt = now
	text := fmt.Sprintf("%d", done>>20)
	if total > 0 {
		text += fmt.Sprintf(" of %d", total>>20)
	}
	d.p.report(run, what+": "+text+" MB")
	if d.say != nil && now.Sub(d.saidAt) >= d.p.o.SayEvery {
		d.saidAt = now
		if err := d.say("fetching the bundle: " + text + " MB"); err != nil {
			d.p.log.Warn("cannot note how far the bundle is", "run", run, "err", err)
		}
	}
}
