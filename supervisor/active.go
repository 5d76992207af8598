package supervisor

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"sync"
	"time"

	"potato/api"
	"potato/project"
	"potato/store"
)

// active is a run that this server works on. What has to outlive the server is in the database and the run's folder.
type active struct {
	id      api.RunID
	backend string
	lease   string
	agentID string // of the agent that claimed it; empty when no agent had to
	host    string // of that agent
	log     *eventLog
	latest  latestRead
	uploads *uploads

	stop     chan struct{} // closed when the work is to end: a cancel, or a limit
	stopOnce sync.Once
	done     chan struct{} // closed when the end of the work was reported and kept
	doneOnce sync.Once

	mu       sync.Mutex
	since    time.Time     // when it left the queue, or this server took it up again (C3)
	pending  time.Time     // since when its job waits in a cluster's own queue; zero: it does not
	waited   time.Duration // that it waited there since it was taken up, before that
	before   time.Duration // that it waited there before this server took it up
	heard    time.Time     // when its agent last spoke, or was still on the line; zero while none is expected to
	spoke    time.Time     // when its agent last began to speak
	working  bool          // an agent is to speak, so its silence counts
	claimed  time.Time     // when an agent got it that has not spoken since; else zero
	released bool          // that agent never spoke: the run goes back to the queue
	over     bool          // no agent has a say any more
	fault    *api.Error    // why it ends, should the database not take it
	silent   bool          // it was silent for too long: nobody will report the end
}

// activate takes a run up. It opens the run's logs where the last server left them. The flag of a cancel is read after the
// run can be found here: of a cancel at this moment, one of the two sees the other.
func (s *Supervisor) activate(ctx context.Context, r store.Run) (*active, error) {
	dir := s.folder(r.RunID)
	if err := dir.make(); err != nil {
		return nil, fmt.Errorf("make the run's folder: %w", err)
	}
	log, err := openEventLog(dir, r.Received)
	if err != nil {
		return nil, err
	}
	a := &active{
		id: r.RunID, backend: r.Backend, lease: newLease(), log: log, uploads: newUploads(dir),
		stop: make(chan struct{}), done: make(chan struct{}), since: time.Now(),
	}
	if err := s.takeLease(ctx, a); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.active[r.RunID] = a
	s.mu.Unlock()
	r, err = s.db.RunByID(ctx, r.RunID)
	if err != nil {
		s.deactivate(a)
		return nil, err
	}
	a.before = project.Seconds(r.SchedulerWaitS)
	if r.SchedulerSince != nil {
		a.pending, a.before = a.since, a.before+project.Seconds(max(s.seconds()-*r.SchedulerSince, 0))
	}
	if r.Finish != nil {
		a.finish()
	}
	if r.CancelRequested || r.ErrorCode != "" {
		a.end()
	}
	return a, nil
}

func (s *Supervisor) deactivate(a *active) {
	s.mu.Lock()
	delete(s.active, a.id)
	s.mu.Unlock()
	a.quit()
	if err := a.log.close(); err != nil {
		s.log.Error("cannot close the run's logs", "run", a.id, "err", err)
	}
	s.hub.change(a.id)
	select {
	case s.freed <- struct{}{}: // the place that it held
	default:
	}
}

func (s *Supervisor) activeRun(id api.RunID) *active {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active[id]
}

// end tells whoever works on the run that it is to end. Why stands in the database.
func (a *active) end() { a.stopOnce.Do(func() { close(a.stop) }) }

func (a *active) ending() bool {
	select {
	case <-a.stop:
		return true
	default:
		return false
	}
}

// finish notes that the end of the work was reported and kept.
func (a *active) finish() {
	a.quit()
	a.doneOnce.Do(func() { close(a.done) })
}

func (a *active) finished() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// quit lets no agent speak for the run any more.
func (a *active) quit() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
}

// untilStop is a context that ends with ctx, with the run, or with the work.
func (a *active) untilStop(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stopWatch := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-a.stop:
			cancel()
		case <-a.done:
			cancel()
		case <-stopWatch:
		}
	})
	return ctx, func() {
		close(stopWatch)
		cancel()
		watch.Wait()
	}
}

// fail ends the work by a fault of this server.
func (a *active) fail(e *api.Error) {
	a.mu.Lock()
	a.fault = e
	a.mu.Unlock()
	a.end()
}

func (a *active) failed() *api.Error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.fault
}

// hear notes that the agent with the lease has spoken, or says that it has nothing to do with the run any more. first says
// that it had not spoken before.
func (a *active) hear(lease string) (first bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case subtle.ConstantTimeCompare([]byte(a.lease), []byte(lease)) != 1 || a.released:
		return false, leaseMoved(a.id)
	case a.over:
		return false, runOver(a.id)
	}
	first = !a.claimed.IsZero()
	a.heard, a.claimed = time.Now(), time.Time{}
	return first, nil
}

// expect says whether an agent is to speak for the run from now on.
func (a *active) expect(agent bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.working, a.heard = agent, time.Now()
}

func newLease() string { return rand.Text() }

func leaseMoved(id api.RunID) *api.Error {
	return api.Conflictf("lease_moved", "Another agent has run %s now, or the queue has it again", id)
}

func runOver(id api.RunID) *api.Error { return api.Gonef("run_over", "Run %s is over", id) }
