package supervisor

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"sync"
	"time"

	"potato/api"
	"potato/store"
)

// Claim answers an agent that asks for work: with the job that it has already, with one that the queue has for it, or with
// nil when there was none within q.WaitS (G2, G8).
func (s *Supervisor) Claim(ctx context.Context, who Agent, q api.ClaimRequest) (*api.Job, error) {
	if who.Run != "" {
		return s.hold(ctx, who, q)
	}
	if q.Backend != "" && q.Backend != who.Backend {
		return nil, api.Unauthenticatedf("token_of_another_backend", "This token is for the backend %s, not for %s", who.Backend, q.Backend).
			WithHint("start the agent with --backend %s, or with the token that `potato training register %s` printed", who.Backend, q.Backend)
	}
	q.Host, q.Version = api.Printable(q.Host), api.Printable(q.Version)
	s.seen.note(who, q.AgentID, q.Host, q.Version)
	patience := time.NewTimer(time.Duration(q.WaitS) * time.Second)
	defer patience.Stop()
	select {
	case <-s.begun:
	default: // what an earlier server left is being taken up
		select {
		case <-s.begun:
		case <-s.left:
			return nil, notKnownYet()
		case <-patience.C:
			return nil, notKnownYet() // an agent gives up what it holds when we say that there is nothing
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if job, err := s.heldJob(ctx, who, q); job != nil || err != nil {
		return job, err
	}
	a := &asker{who: who, q: q, got: make(chan claimed, 1)}
	if s.claims.ask(a) {
		s.look(ctx)
	}
	answer := s.awaitClaim(ctx, a, patience.C)
	s.seen.note(who, q.AgentID, "", "")
	if answer.err != nil || answer.id == "" {
		return nil, answer.err
	}
	return s.jobOf(ctx, answer.id)
}

func notKnownYet() *api.Error {
	return api.Unavailablef("server_starting", "The server is just starting or stopping").WithHint("ask again in a moment")
}

func (s *Supervisor) awaitClaim(ctx context.Context, a *asker, patience <-chan time.Time) claimed {
	select {
	case answer := <-a.got:
		return answer
	default:
	}
	select {
	case answer := <-a.got:
		return answer
	case <-patience:
	case <-s.left:
	case <-ctx.Done():
	}
	if s.claims.leave(a) {
		return claimed{err: ctx.Err()}
	}
	// Whoever took it out of the line is about to answer.
	select {
	case answer := <-a.got:
		return answer
	case <-s.left:
		return claimed{err: ctx.Err()}
	}
}

// heldJob finds a job that the agent has: one whose directory it holds, or the answer to this very question, which was lost
// on its way.
func (s *Supervisor) heldJob(ctx context.Context, who Agent, q api.ClaimRequest) (*api.Job, error) {
	for _, h := range q.Held {
		l, err := s.db.LeaseOf(ctx, h.RunID)
		if err != nil {
			return nil, err
		}
		if l == nil || subtle.ConstantTimeCompare([]byte(l.Lease), []byte(h.Lease)) != 1 {
			continue
		}
		if a := s.stillHas(who, l); a != nil {
			if err := (desk{s: s, backend: who.Backend}).hear(ctx, a, l.Lease); err != nil {
				continue // it ended at this moment
			}
			return s.jobOf(ctx, l.RunID)
		}
	}
	l, err := s.db.LeaseByClaim(ctx, q.AgentID, q.ClaimID)
	if err != nil || l == nil {
		return nil, err
	}
	if a := s.stillHas(who, l); a != nil && a.askedAgain() {
		return s.jobOf(ctx, l.RunID)
	}
	return nil, nil
}

// stillHas finds the run of a lease that is valid: its work has not ended, and nobody else has it.
func (s *Supervisor) stillHas(who Agent, l *store.Lease) *active {
	a := s.activeRun(l.RunID)
	if a == nil || a.backend != who.Backend || a.lease != l.Lease {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.released {
		return nil
	}
	return a
}

// askedAgain gives an agent that asks for its job once more its time to begin anew. False says that it came too late.
func (a *active) askedAgain() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.claimed.IsZero() {
		a.claimed = time.Now()
	}
	return !a.released
}

// jobOf is a run as its agent gets it.
func (s *Supervisor) jobOf(ctx context.Context, id api.RunID) (*api.Job, error) {
	ctx = context.WithoutCancel(ctx)
	a := s.activeRun(id)
	if a == nil {
		return nil, nil // it ended while its agent asked
	}
	r, err := s.db.RunByID(ctx, id)
	if err != nil {
		return nil, err
	}
	spec, err := readSpec(s.folder(id).spec())
	if err != nil { // it is written with the bundle
		schemes, missing := s.schemes(r.SchemaNames)
		if missing != nil {
			return nil, errors.Join(err, missing)
		}
		spec = s.spec(s.folder(id), r, api.Manifest{Schemas: schemes})
	}
	spec.BundleDir, spec.Workdir, spec.EventsFile = "", "", ""
	return &api.Job{
		RunID: id, Lease: a.lease, Spec: spec, GraceSeconds: s.grace().Seconds(),
		HeartbeatTimeoutS: s.heartbeatTimeout(r.Backend).Seconds(), BundleDigest: r.BundleDigest, NextSeq: a.log.nextSeq(),
	}, nil
}

// offer gives a queued run to the agent that waits longest. Run alone calls it. taken says that it holds a place now.
func (s *Supervisor) offer(ctx context.Context, r store.Run, work *sync.WaitGroup) (taken bool, err error) {
	for {
		a := s.claims.next(r.Backend)
		if a == nil {
			return false, s.waits(ctx, r)
		}
		at, step, message := s.seconds(), "building the bundle", "Building the bundle"
		l := store.Lease{RunID: r.RunID, Lease: newLease(), AgentID: a.q.AgentID, ClaimID: a.q.ClaimID, Host: a.q.Host}
		err := s.db.ClaimRun(ctx, l, a.who.SHA256, store.RunUpdate{StartedAt: &at, Step: &step, Message: &message, Host: &a.q.Host})
		switch {
		case api.HasCode(err, "token_revoked"):
			a.got <- claimed{err: err}
			continue
		case err != nil:
			s.claims.giveBack(a)
			if api.HasCode(err, "run_moved") || api.HasCode(err, "run_not_found") {
				err = nil // cancelled at this moment
			}
			return false, err
		}
		s.log.Info("an agent has claimed the run", "run", r.RunID, "backend", r.Backend, "agent", a.q.AgentID, "host", a.q.Host)
		s.hub.change(r.RunID)
		r.Status, r.StartedAt, r.Host = api.RunBuilding, &at, a.q.Host
		s.carry(ctx, r, work) // first, so that the agent's first word finds the run
		if taken := s.activeRun(r.RunID); taken != nil {
			s.noteAgent(ctx, taken, fmt.Sprintf("claimed by the agent %s, version %s, on %s", a.q.AgentID, a.q.Version, a.q.Host))
		}
		a.got <- claimed{id: r.RunID}
		return true, nil
	}
}

// waits notes that a run had a place and nobody to take it, and ends it when that lasts too long (G2).
func (s *Supervisor) waits(ctx context.Context, r store.Run) error {
	if r.WaitingSince == nil {
		now := s.seconds()
		if err := s.update(ctx, r.RunID, store.RunUpdate{WaitingSince: &now}); err != nil {
			return err
		}
		r.WaitingSince = &now
	}
	b, _ := s.o.Config.ModelTraining.Backends.ByName(r.Backend)
	if b.QueueTimeoutS <= 0 || s.seconds()-*r.WaitingSince < b.QueueTimeoutS {
		return nil
	}
	s.endError(ctx, r.RunID, api.RunQueued, api.Unavailablef("queue_timeout",
		"No agent on %s took the run within %g seconds, its queue_timeout_s", r.Backend, b.QueueTimeoutS).
		WithHint("%s; or raise `queue_timeout_s`", s.startAgent(r.Backend)))
	return nil
}

// startAgent says how a run that waits for an agent gets one (§11).
func (s *Supervisor) startAgent(backend string) string {
	return fmt.Sprintf("start `potato training agent --server URL --backend %s` on the training machine, and look at the token with Check", backend)
}

// takeLease lets a run be spoken for by the agent that claimed it, also when that was before this server started. Its time
// to be heard of starts afresh.
func (s *Supervisor) takeLease(ctx context.Context, a *active) error {
	if !s.claimedByAgents(a.backend) {
		return nil
	}
	l, err := s.db.LeaseOf(ctx, a.id)
	if err != nil {
		return err
	}
	if l == nil { // nobody has it
		a.released = true
		a.end()
		return nil
	}
	a.lease, a.agentID, a.host = l.Lease, l.AgentID, l.Host
	a.working, a.heard = true, time.Now()
	if l.HeardAt == nil {
		a.claimed = time.Now()
	}
	return nil
}

// release gives up an agent that has not spoken since it got the run. False says that it has, or still has time to.
func (a *active) release(after time.Duration) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.released || a.over || a.claimed.IsZero() || time.Since(a.claimed) < after {
		return false
	}
	a.released = true
	return true
}

func (a *active) wasReleased() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.released
}

// requeue puts a run back into the queue whose agent never spoke. Nobody works on it here any more.
func (s *Supervisor) requeue(ctx context.Context, id api.RunID, from api.RunStatus, host string) {
	dir := s.folder(id)
	for _, path := range []string{dir.bundle(), dir.archive(), dir.archiveSum(), dir.spec()} {
		s.remove(id, path)
	}
	for {
		err := s.db.RequeueRun(context.WithoutCancel(ctx), id, from, "Waiting in the queue again: the agent on "+host+" did not begin")
		if err == nil || api.HasCode(err, "run_moved") || api.HasCode(err, "run_not_found") {
			break
		}
		s.log.Error("cannot put the run back into the queue; trying again", "run", id, "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(5 * s.o.LimitEvery):
		}
	}
	s.log.Warn("the agent that claimed the run never spoke; it is queued again", "run", id, "host", host)
	s.hub.change(id)
	select {
	case s.freed <- struct{}{}:
	default:
	}
}

// claimedByAgents reports whether runs of the backend wait for an agent to ask for them.
func (s *Supervisor) claimedByAgents(backend string) bool {
	b, ok := s.o.Config.ModelTraining.Backends.ByName(backend)
	return ok && b.Type == api.BackendAgent
}
