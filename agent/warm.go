package agent

import (
	"context"
	"crypto/rand"
	"reflect"
	"sync"
	"time"

	"potato/trainers"
)

const warmIdle = 10 * time.Minute

// WarmPool keeps at most one worker that has its interpreter up and its trainer imported, and waits for a job. It takes
// the import time out of a run; isolation is that of any other worker. It is safe for concurrent use.
type WarmPool struct {
	// Idle is how long a worker is kept; default ten minutes.
	Idle time.Duration

	mu    sync.Mutex
	kept  *warmWorker
	timer *time.Timer
}

// WarmSpec is what a kept worker was started with. A job gets it only when all of it fits.
type WarmSpec struct {
	Trainer    string
	Python     string
	WorkerPath string
	Env        []string // default WorkerEnv(), as in Options
	NumThreads int
	Shim       []string
}

// warmWorker is a shim that waits for a job line on its stdin.
type warmWorker struct {
	*startedShim
	spec WarmSpec
}

// Start keeps a worker for s, unless that very one is already kept; one for anything else is ended first. Called again
// it prolongs the idle time. It does not wait until the worker is ready.
func (p *WarmPool) Start(ctx context.Context, s WarmSpec) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Env == nil {
		s.Env = WorkerEnv()
	}
	if p.kept != nil && p.kept.fits(s) {
		p.keep(p.kept)
		return nil
	}
	if err := p.drop(); err != nil {
		return err
	}
	python, err := trainers.FindPython(s.Python, s.Env)
	if err != nil {
		return err
	}
	shim, err := startShim(ctx, s.Shim, rand.Text())
	if err != nil {
		return err
	}
	start := shimStart{
		Warm: true, Argv: []string{python, s.WorkerPath, "--warm", s.Trainer}, Env: ThreadEnv(s.Env, s.NumThreads), Marker: shim.marker,
	}
	if err := shim.tell(start, false); err != nil {
		return err
	}
	p.keep(&warmWorker{startedShim: shim, spec: s})
	return nil
}

// Close ends the kept worker and waits for it.
func (p *WarmPool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.drop()
}

// take hands out the kept worker when it fits and lives; the pool has none then. A nil pool has none either.
func (p *WarmPool) take(s WarmSpec) *warmWorker {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w := p.kept
	if w == nil || !w.fits(s) {
		return nil
	}
	p.timer.Stop()
	p.kept = nil
	return w
}

// keep makes w the kept worker and starts its idle time anew.
func (p *WarmPool) keep(w *warmWorker) {
	if p.timer != nil {
		p.timer.Stop()
	}
	idle := p.Idle
	if idle <= 0 {
		idle = warmIdle
	}
	p.kept = w
	p.timer = time.AfterFunc(idle, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.kept == w {
			_ = p.drop() // nobody is left to tell; it holds no job
		}
	})
}

func (p *WarmPool) drop() error {
	if p.timer != nil {
		p.timer.Stop()
	}
	w := p.kept
	p.kept = nil
	if w == nil {
		return nil
	}
	return w.close()
}

func (w *warmWorker) fits(s WarmSpec) bool {
	return reflect.DeepEqual(w.spec, s) && alive(w.pid, w.start)
}
