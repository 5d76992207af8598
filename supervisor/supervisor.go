package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"potato/runners"

	"potato/agent"
	"potato/api"
	"potato/project"
	"potato/store"
)

// Options are what a supervisor stands on. Config, Study, DB and Runners are needed, the rest has defaults.
type Options struct {
	Config  *project.Config
	Study   *project.Study
	DB      *store.DB
	Runners map[api.BackendType]runners.Runner // the types of backends that this build can start runs on; local is one
	Python  *runners.Python                    // the local interpreter: what it can train
	Now     func() time.Time                   // for what people read; limits run on the monotonic clock
	Log     *slog.Logger
	Version string

	LimitEvery    time.Duration // how often limits are looked at; default a second (C3)
	ClaimTimeout  time.Duration // how long an agent that got a run may take to speak, before the queue has it again; default 30 s
	BundleWait    time.Duration // how long the answer to an agent that asks for a bundle is kept back while it is built; default 5 s
	RemoteSlack   time.Duration // as StopSlack, of agents elsewhere; default a second (H8)
	HeartbeatWait time.Duration // how long a heartbeat waits for a cancel; default 10 s, at most a third of the time-out
	StopSlack     time.Duration // how long after the grace an agent may take to report the end of a cancelled run; default 5 s
	LifeSign      time.Duration // how often subscribers without news hear that we live; default 15 s
	RetrainEvery  time.Duration // how often auto-retrain looks at the labels; default 10 s

	// Hold, when set, is called before the work of each state is begun; tests keep a run there with it.
	Hold func(ctx context.Context, id api.RunID, at api.RunStatus)
}

// Supervisor owns the runs of a study: their queue, their states, their events and what becomes of their predictions.
// It is safe for concurrent use.
type Supervisor struct {
	o      Options
	dir    string // the training folder
	db     *store.DB
	hub    *hub
	claims *claims
	seen   *seenAgents
	log    *slog.Logger
	sums   sums
	copies *copies
	asks   chan chan struct{} // a look at the queue, answered when it was taken
	freed  chan struct{}      // a place was freed
	begun  chan struct{}      // closed when Run looks at the queue
	used   chan struct{}      // somebody uses the Training page
	left   chan struct{}      // closed when it no longer does

	runTokens runTokens

	mu     sync.Mutex
	active map[api.RunID]*active // the runs that this server works on

	settle  sync.Mutex // write-back, retention and deletion: one at a time, they decide by each other's rows
	retrain retrainState
}

// New makes a supervisor. It does nothing until Run.
func New(o Options) (*Supervisor, error) {
	if o.Config == nil || o.Study == nil || o.DB == nil || o.Runners[api.BackendLocal] == nil || o.Python == nil {
		return nil, errors.New("a supervisor needs a config, a study, a database, an interpreter and a local runner")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	for d, v := range map[*time.Duration]time.Duration{
		&o.LimitEvery: time.Second, &o.HeartbeatWait: 10 * time.Second, &o.StopSlack: 5 * time.Second,
		&o.LifeSign: 15 * time.Second, &o.RetrainEvery: 10 * time.Second, &o.ClaimTimeout: 30 * time.Second,
		&o.BundleWait: 5 * time.Second, &o.RemoteSlack: time.Second,
	} {
		if *d <= 0 {
			*d = v
		}
	}
	dir, err := filepath.Abs(o.Config.TrainingPath())
	if err != nil {
		return nil, err
	}
	if o.Hold == nil {
		o.Hold = func(context.Context, api.RunID, api.RunStatus) {}
	}
	s := &Supervisor{
		o: o, dir: dir, db: o.DB, hub: newHub(), claims: newClaims(), copies: newCopies(), log: o.Log, asks: make(chan chan struct{}), freed: make(chan struct{}, 1),
		begun: make(chan struct{}), used: make(chan struct{}, 1), left: make(chan struct{}), active: map[api.RunID]*active{},
	}
	s.seen = &seenAgents{now: s.seconds, new: map[seenKey]store.AgentSeen{}}
	return s, nil
}

// Run takes runs out of the queue, follows them to their end and takes up again what an earlier server left. It blocks
// until ctx ends, and leaves what is training then to the server that comes next. It may be called once.
func (s *Supervisor) Run(ctx context.Context) error {
	defer close(s.left)
	var work sync.WaitGroup
	defer work.Wait()
	if err := s.recover(ctx, &work); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	work.Go(func() { s.retrainLoop(ctx) })
	work.Go(func() { s.seenLoop(ctx) })
	work.Go(func() { s.warmLoop(ctx) })
	work.Go(func() { s.copyLoop(ctx) })
	work.Go(func() { _, _ = s.o.Python.Trainers(ctx) }) // asked before the first run, which waits for the answer
	close(s.begun)
	tick := time.NewTicker(s.o.LimitEvery)
	defer tick.Stop()
	for {
		if err := s.takeQueued(ctx, &work); err != nil && ctx.Err() == nil {
			s.log.Error("cannot look at the queue", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-s.freed:
		case ask := <-s.asks:
			if err := s.takeQueued(ctx, &work); err != nil && ctx.Err() == nil {
				s.log.Error("cannot look at the queue", "err", err)
			}
			close(ask)
		}
	}
}

// look has the queue looked at now and waits until that was done; at once when nobody looks.
func (s *Supervisor) look(ctx context.Context) {
	select {
	case <-s.begun:
	default:
		return
	}
	ask := make(chan struct{})
	select {
	case s.asks <- ask:
	case <-s.left:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-ask:
	case <-s.left:
	}
}

// Desk is the view that an agent on this machine has of its server; AgentDesk is that of agents elsewhere.
func (s *Supervisor) Desk() agent.Desk { return desk{s: s} }

// update changes a run's row and tells those who watch.
func (s *Supervisor) update(ctx context.Context, id api.RunID, up store.RunUpdate) error {
	if err := s.db.UpdateRun(ctx, id, up); err != nil {
		return err
	}
	s.hub.change(id)
	return nil
}

// move takes a run to another state and tells those who watch.
func (s *Supervisor) move(ctx context.Context, id api.RunID, from, to api.RunStatus, up store.RunUpdate) error {
	if err := s.db.MoveRun(ctx, id, from, to, up); err != nil {
		return err
	}
	s.log.Info("run is "+string(to), "run", id)
	s.hub.change(id)
	return nil
}

// seconds is the present as the API writes it.
func (s *Supervisor) seconds() float64 { return float64(s.o.Now().UnixMilli()) / 1000 }
