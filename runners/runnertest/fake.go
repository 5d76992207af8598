package runnertest

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners"
)

// Fake is a runner without a machine. It obeys the whole contract, and the parameters gate, stubborn, fail and predict of
// the steered trainer. What it works on outlives Follow, and a Fake of its own for every server may share a Machine.
type Fake struct {
	Machine *Machine
	// StartError is what Start answers, when set.
	StartError error
}

// Machine is where the fake's work goes on, whoever follows it.
type Machine struct {
	mu   sync.Mutex
	work map[string]*fakeWork
}

type fakeWork struct {
	stopped bool
	ended   *api.Finish
}

// Check implements runners.Runner.
func (f *Fake) Check(_ context.Context, o runners.CheckOptions) api.CheckReport {
	return api.CheckReport{
		Backend: o.Backend, Type: api.BackendLocal, OK: true, Summary: "a machine of the tests", GPUs: []api.GPU{}, MissingPackages: []api.MissingPackages{},
		Items: []api.CheckItem{{Level: api.CheckOK, Topic: "fake", Text: "nothing is real here"}},
	}
}

// Start implements runners.Runner.
func (f *Fake) Start(ctx context.Context, j runners.Job) (api.Handle, error) {
	j.Step("going to the fake machine")
	if f.StartError != nil {
		return api.Handle{}, f.StartError
	}
	if ctx.Err() != nil {
		return api.Handle{}, ctx.Err()
	}
	h := api.Handle{Backend: j.Backend, Dir: j.Dir, Host: "fake", Marker: string(j.RunID)}
	return h, j.Save(h)
}

func (m *Machine) of(h api.Handle) *fakeWork {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.work == nil {
		m.work = map[string]*fakeWork{}
	}
	w := m.work[h.Marker]
	if w == nil {
		w = &fakeWork{}
		m.work[h.Marker] = w
	}
	return w
}

// Follow implements runners.Runner.
func (f *Fake) Follow(ctx context.Context, j runners.Job, h api.Handle) error {
	t := &teller{j: j, next: j.NextSeq}
	if err := t.say(ctx, api.Event{Event: api.EventStatus, State: "running", Step: "fitting"}); err != nil {
		return err
	}
	w := f.Machine.of(h)
	var told time.Time // when the work was told to end
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		f.Machine.mu.Lock()
		stopped, ended := w.stopped, w.ended
		f.Machine.mu.Unlock()
		cancelled := t.cancelled()
		if cancelled && told.IsZero() {
			told = time.Now()
		}
		stubborn, _ := j.Spec.Params["stubborn"].(bool)
		switch {
		case ended != nil:
		case stopped, cancelled && (!stubborn || time.Since(told) > project.Seconds(j.GraceSeconds)):
			ended = &api.Finish{Cancelled: true, Host: "fake"}
		case f.done(j) && !cancelled:
			var err error
			if ended, err = f.result(ctx, j, t); err != nil {
				tick.Stop()
				return err
			}
		}
		if ended != nil {
			tick.Stop()
			f.Machine.mu.Lock()
			w.ended = ended
			f.Machine.mu.Unlock()
			return j.Desk.Finish(ctx, j.Job, *ended)
		}
		select {
		case <-ctx.Done():
			tick.Stop()
			return ctx.Err()
		case <-tick.C:
		}
	}
}

func (f *Fake) done(j runners.Job) bool {
	gate, _ := j.Spec.Params["gate"].(string)
	if gate == "" {
		return true
	}
	_, err := os.Stat(gate)
	return err == nil
}

// result ends the work as the parameters say.
func (f *Fake) result(ctx context.Context, j runners.Job, t *teller) (*api.Finish, error) {
	if text, _ := j.Spec.Params["fail"].(string); text != "" {
		return &api.Finish{ErrorCode: "validation_failed", Error: text, Hint: "do something about it", Host: "fake"}, nil
	}
	path := filepath.Join(j.Dir, "artifacts", "predictions.jsonl")
	if err := predict(filepath.Join(j.Dir, "bundle"), path); err != nil {
		return nil, err
	}
	if err := t.say(ctx, api.Event{Event: api.EventResult, Status: "success", PredictionsFile: "predictions.jsonl", Device: "cpu"}); err != nil {
		return nil, err
	}
	zero := 0
	end := &api.Finish{ExitCode: &zero, Host: "fake", ArtifactURI: filepath.Join(j.Dir, "artifacts")}
	if err := j.Desk.Predictions(ctx, j.Job, path); err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		e := api.AsError(err)
		end = &api.Finish{ErrorCode: e.Code, Error: e.Message, Hint: e.Hint, Host: "fake"}
	}
	return end, nil
}

// predict answers positive for every item of the bundle but the training items.
func predict(bundle, path string) error {
	b, err := project.OpenBundle(bundle)
	if err != nil {
		return err
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	sure := 0.75
	lines := json.NewEncoder(f)
	for item, err := range b.Items() {
		if err != nil {
			return errors.Join(err, f.Close())
		}
		if item.Split == api.SplitTrain {
			continue
		}
		p := api.Prediction{
			InstanceID: item.InstanceID, SchemaName: Scheme, Confidence: &sure,
			Payload: api.Payload{Label: "positive", Confidence: &sure, Scores: map[string]float64{"positive": sure}},
		}
		if err := lines.Encode(p); err != nil {
			return errors.Join(err, f.Close())
		}
	}
	return f.Close()
}

// Stop implements runners.Runner.
func (f *Fake) Stop(_ context.Context, _ runners.Job, h api.Handle) error {
	w := f.Machine.of(h)
	f.Machine.mu.Lock()
	defer f.Machine.mu.Unlock()
	w.stopped = true
	return nil
}

// teller numbers events and hands them to the desk.
type teller struct {
	j      runners.Job
	next   int64
	cancel bool
}

func (t *teller) say(ctx context.Context, e api.Event) error {
	e.V, e.T, e.Seq = 1, float64(time.Now().UnixMilli())/1000, t.next
	a, err := t.j.Desk.Progress(ctx, t.j.Job, []api.Event{e})
	if err != nil {
		return err
	}
	t.next, t.cancel = a.NextSeq, t.cancel || a.Cancel
	return nil
}

func (t *teller) cancelled() bool {
	select {
	case <-t.j.Cancel:
		t.cancel = true
	default:
	}
	return t.cancel
}
