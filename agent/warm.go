package agent

import (
	"context"
	"time"
)

// WarmPool keeps at most one worker that has its interpreter up and its trainer imported, and waits for a job. It takes
// the import time out of a run; isolation is that of any other worker.
type WarmPool struct {
	// Idle is how long a worker is kept; default ten minutes.
	Idle time.Duration
}

// WarmSpec is what a kept worker was started with. A job gets it only when all of it fits.
type WarmSpec struct {
	Trainer    string
	Python     string
	WorkerPath string
	Env        []string
	NumThreads int
	Shim       []string
}

// Start keeps a worker for s, unless that very one is already kept; one for anything else is ended first. Called again
// it prolongs the idle time. It does not wait until the worker is ready.
func (p *WarmPool) Start(ctx context.Context, s WarmSpec) error { panic("unfinished") }

// Close ends the kept worker and waits for it.
func (p *WarmPool) Close() error { panic("unfinished") }
