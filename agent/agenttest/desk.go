package agenttest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"potato/agent"
	"potato/api"
)

// Call names a method of the desk.
type Call string

// The methods.
const (
	CallBundle      Call = "bundle"
	CallProgress    Call = "progress"
	CallHeartbeat   Call = "heartbeat"
	CallPredictions Call = "predictions"
	CallFinish      Call = "finish"
)

// Desk is a server in memory that keeps the rules of the real one: it takes events in order, ignores what it has, and
// knows a job that is over. The zero value is ready to use, and it is safe for concurrent use.
type Desk struct {
	// BundleDir is what Bundle answers.
	BundleDir string
	// Refuse fails a call before it has an effect, Cut after that, as a lost answer does; both may be nil.
	Refuse, Cut func(Call) error

	mu          sync.Mutex
	changed     chan struct{}
	cancel      bool
	grace       float64
	events      []api.Event
	predictions []byte
	finish      *api.Finish
	calls       map[Call]int
	faults      []string
}

var _ agent.Desk = (*Desk)(nil)

// Bundle implements agent.Desk.
func (d *Desk) Bundle(_ context.Context, _ api.Job, _ string) (string, error) {
	return d.BundleDir, d.call(CallBundle, func() error { return nil })
}

// Progress implements agent.Desk.
func (d *Desk) Progress(_ context.Context, _ api.Job, events []api.Event) (api.Answer, error) {
	var a api.Answer
	err := d.call(CallProgress, func() error {
		for _, e := range events {
			next := int64(len(d.events)) + 1
			if e.Seq == next {
				if d.finish != nil {
					d.faults = append(d.faults, fmt.Sprintf("event %d came after the end of the job", e.Seq))
				}
				d.events = append(d.events, e)
			} else if e.Seq < next && e.Event != d.events[e.Seq-1].Event {
				d.faults = append(d.faults, fmt.Sprintf("event %d was a %s and came again as a %s", e.Seq, d.events[e.Seq-1].Event, e.Event))
			}
		}
		a = d.answer()
		return nil
	})
	return a, err
}

// Heartbeat implements agent.Desk.
func (d *Desk) Heartbeat(ctx context.Context, _ api.Job) (api.Answer, error) {
	d.mu.Lock()
	changed := d.change()
	wait := !d.cancel
	d.mu.Unlock()
	if wait {
		select {
		case <-changed:
		case <-ctx.Done():
			return api.Answer{}, ctx.Err()
		case <-time.After(time.Second):
		}
	}
	var a api.Answer
	err := d.call(CallHeartbeat, func() error {
		a = d.answer()
		return nil
	})
	return a, err
}

// Predictions implements agent.Desk.
func (d *Desk) Predictions(_ context.Context, _ api.Job, path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return d.call(CallPredictions, func() error {
		if d.finish != nil && !bytes.Equal(d.predictions, b) {
			d.faults = append(d.faults, "other predictions came after the end of the job")
		}
		d.predictions = b
		return nil
	})
}

// Finish implements agent.Desk.
func (d *Desk) Finish(_ context.Context, _ api.Job, f api.Finish) error {
	return d.call(CallFinish, func() error {
		d.finish = &f
		return nil
	})
}

func (d *Desk) call(c Call, effect func() error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.calls == nil {
		d.calls = map[Call]int{}
	}
	d.calls[c]++
	if d.Refuse != nil {
		if err := d.Refuse(c); err != nil {
			return err
		}
	}
	if err := effect(); err != nil {
		return err
	}
	if d.Cut != nil {
		return d.Cut(c)
	}
	return nil
}

func (d *Desk) answer() api.Answer {
	return api.Answer{Cancel: d.cancel, GraceSeconds: d.grace, NextSeq: int64(len(d.events)) + 1}
}

// change is closed at the next change of what a heartbeat waits for.
func (d *Desk) change() chan struct{} {
	if d.changed == nil {
		d.changed = make(chan struct{})
	}
	return d.changed
}

// Cancel makes every answer a cancel from now on; a grace of 0 leaves it as the job has it.
func (d *Desk) Cancel(grace time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cancel, d.grace = true, grace.Seconds()
	close(d.change())
	d.changed = nil
}

// Events are the events taken so far.
func (d *Desk) Events() []api.Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]api.Event(nil), d.events...)
}

// NextSeq is the first number the desk lacks, as a job would say at adoption.
func (d *Desk) NextSeq() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(len(d.events)) + 1
}

// Stored is the content of the predictions, nil before they came.
func (d *Desk) Stored() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.predictions
}

// Finished is the last word on the job; nil before it came.
func (d *Desk) Finished() *api.Finish {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.finish
}

// Calls is how often a method was called.
func (d *Desk) Calls(c Call) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls[c]
}

// Faults are breaches of the protocol that the agent committed.
func (d *Desk) Faults() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faults
}

// Has reports whether an event has come whose step or message is text.
func (d *Desk) Has(text string) bool {
	for _, e := range d.Events() {
		if e.StepText() == text || e.Msg == text {
			return true
		}
	}
	return false
}
