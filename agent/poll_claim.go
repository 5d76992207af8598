package agent

import (
	"context"
	"crypto/rand"
	"errors"
	mathrand "math/rand/v2"
	"slices"
	"sync"
	"time"

	"potato/api"
)

const (
	quickAnswer = time.Second      // an answer without work that comes sooner is not asked for again at once
	sayAgain    = time.Minute      // how often a server that stays away is mentioned
	longestRest = 10 * time.Minute // of a Retry-After that is obeyed
)

// ask asks for work until there is some. It returns nil when the agent was told to stop.
func (p *poller) ask(ctx context.Context) (*api.Job, error) {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-p.o.Stop:
			cancel()
		case <-ctx.Done():
		}
	})
	defer wg.Wait()
	defer cancel()
	p.report("", "waiting for a run")
	away := silence{p: p}
	q := p.question()
	for {
		began := time.Now()
		job, err := p.o.Client.Claim(ctx, q)
		if ctx.Err() != nil {
			return nil, outer.Err()
		}
		pause := time.Duration(0)
		switch {
		case err == nil:
			away.over()
			if err := p.settle(q.Held, job); err != nil {
				return nil, err
			}
			if job != nil {
				return job, nil
			}
			if quick := min(quickAnswer, p.o.ClaimWait/2); q.Held == nil && time.Since(began) < quick {
				pause = quick
			}
			pause += mathrand.N(250 * time.Millisecond) // many agents must not ask in step
			q = p.question()
		case p.hopeless(err):
			return nil, err
		default:
			pause = away.next(err)
		}
		select {
		case <-ctx.Done():
			return nil, outer.Err()
		case <-time.After(pause):
		}
	}
}

// question is the next one. Until it is answered it keeps its name, so that a job whose handing over got lost comes again.
func (p *poller) question() api.ClaimRequest {
	q := api.ClaimRequest{
		AgentID: p.id, ClaimID: rand.Text(), Host: hostname(), Version: p.o.Version, Backend: p.o.Job.Backend, WaitS: int(p.o.ClaimWait.Seconds()),
	}
	for _, job := range p.held() {
		q.Held = append(q.Held, api.Held{RunID: job.RunID, Lease: job.Lease})
	}
	return q
}

// settle gives up what the server, when it was asked, did not hand out again.
func (p *poller) settle(held []api.Held, job *api.Job) error {
	if job != nil && slices.ContainsFunc(held, func(h api.Held) bool { return h.RunID == job.RunID }) {
		return nil // one at a time; the others are asked for again
	}
	for _, h := range held {
		p.log.Warn("the run is not this agent's any more", "run", h.RunID)
		if err := errors.Join(p.end(h.RunID), p.clear(h.RunID)); err != nil {
			return err
		}
	}
	return nil
}

// hopeless reports errors that asking again would not change. What is no server of ours from the beginning is a wrong
// address; what is none any more is a proxy whose server is away.
func (p *poller) hopeless(err error) bool {
	if api.Misdirected(err) {
		return !p.answered
	}
	switch api.AsError(err).Kind {
	case api.KindUnavailable, api.KindTooMany, api.KindInternal, api.KindTooLarge:
		return false
	}
	return true
}

// silence is a server that does not answer.
type silence struct {
	p     *poller
	last  time.Duration
	since time.Time // when it began
	said  time.Time
}

// next is the pause before the next question.
func (s *silence) next(err error) time.Duration {
	now := time.Now()
	if s.since.IsZero() {
		s.since = now
	}
	if now.Sub(s.said) > sayAgain {
		s.said = now
		s.p.log.Warn("no answer; asking again until there is one", "err", err)
		s.p.report("", "the server does not answer")
	}
	if wait := api.RetryAfter(err); wait > 0 {
		return min(wait, longestRest) + mathrand.N(wait/4)
	}
	s.last = min(max(2*s.last, s.p.o.RetryAfter), s.p.o.LongestWait)
	return s.last/2 + mathrand.N(s.last)
}

func (s *silence) over() {
	s.p.answered = true
	if !s.since.IsZero() {
		s.p.log.Info("the server answers", "after", time.Since(s.since).Round(time.Second))
		s.p.report("", "waiting for a run")
	}
	*s = silence{p: s.p}
}
