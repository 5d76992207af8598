package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"potato/api"
)

var _ Desk = (*api.Client)(nil)

// pollDesk is the server over HTTP as a polling agent uses it: what passes is also shown on the agent's own machine, and a
// run that was ended because the agent was told to leave says so.
type pollDesk struct {
	*api.Client
	p *poller

	mu   sync.Mutex
	step string
}

func (p *poller) desk() *pollDesk {
	d := &pollDesk{p: p}
	client := *p.o.Client
	client.OnTransfer = d.transferred
	d.Client = &client
	return d
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
	text := fmt.Sprintf("%s: %d", what, done>>20)
	if total > 0 {
		text += fmt.Sprintf(" of %d", total>>20)
	}
	d.p.report(run, text+" MB")
}
