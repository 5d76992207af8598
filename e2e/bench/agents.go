package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"potato/api"
)

const (
	idleAgents   = 1000
	idleTime     = 32 * time.Second // each of them asks anew once, as its poll ends after 30 s
	claimedRuns  = 30
	ticksASecond = 100 // of CPU time in /proc, on every Linux of ours
)

// measureAgents lets a thousand agents wait for work by long polls, each on a connection of its own. What they cost is the
// server's CPU over a time in which nothing happens, and its memory; what they gain is how soon a run is claimed.
func measureAgents(ctx context.Context, b *bench) (rows []row, err error) {
	study, token, err := b.writeAgentStudy(ctx, "agents", smallStudy)
	if err != nil {
		return nil, err
	}
	s, err := b.startOurs(ctx, study)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := s.settle(ctx, false); err != nil {
		return nil, err
	}
	before, err := s.resident()
	if err != nil {
		return nil, err
	}
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	crowd := &crowd{got: make(chan claimedRun, claimedRuns), failed: make(chan error, idleAgents)}
	defer crowd.agents.Wait()
	defer leave()
	if err := crowd.gather(ctx, s, token); err != nil {
		return nil, err
	}
	cpu, err := s.busy(ctx, idleTime)
	if err != nil {
		return nil, err
	}
	resident, err := s.resident()
	if err != nil {
		return nil, err
	}
	b.say("%d agents: %.1f%% of a core, %.1f MB (%.1f MB without them)", idleAgents, cpu, resident, before)
	waits := make([]float64, 0, claimedRuns)
	for range claimedRuns {
		begin := time.Now()
		id, err := s.postToAgent(ctx)
		if err != nil {
			return nil, err
		}
		got, err := crowd.claimed(ctx, id)
		if err != nil {
			return nil, err
		}
		waits = append(waits, got.at.Sub(begin).Seconds())
		if err := givenUp(ctx, got.client, got.job); err != nil {
			return nil, err
		}
	}
	b.say("claimed after %.1f ms in the median, %.1f ms at p95", 1000*median(waits), 1000*percentile(waits, 0.95))
	what := fmt.Sprintf("%d idle agents: ", idleAgents)
	return []row{
		{Name: "agents-cpu", What: what + "the server's CPU", Unit: "% of a core", Ours: []float64{cpu}},
		{Name: "agents-memory", What: what + "its memory (RSS)", Unit: "MB", Ours: []float64{resident}},
		{Name: "agents-claim", What: what + "POST to claim, p95", Unit: "s", Ours: []float64{percentile(waits, 0.95)}, Bar: atMost(0.15, "F3")},
	}, nil
}

// crowd are agents that wait for work.
type crowd struct {
	agents sync.WaitGroup
	got    chan claimedRun
	failed chan error
}

type claimedRun struct {
	job    api.Job
	client *api.Client
	at     time.Time
}

// gather starts the agents and returns when each has asked.
func (c *crowd) gather(ctx context.Context, s *server, token string) error {
	for i := range idleAgents {
		client, err := s.newAgent(token)
		if err != nil {
			return err
		}
		c.agents.Go(func() {
			defer client.HTTP.CloseIdleConnections()
			if err := c.wait(ctx, client, fmt.Sprintf("agent-%d", i)); err != nil && ctx.Err() == nil {
				c.failed <- err
			}
		})
		if i%50 == 49 { // a crowd that starts at once is another measurement
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
	}
	return s.settle(ctx, false)
}

// wait asks for work as an agent does, again and again.
func (c *crowd) wait(ctx context.Context, client *api.Client, agent string) error {
	for n := 0; ; n++ {
		job, err := client.Claim(ctx, question(agent, n, 30))
		if err != nil {
			return err
		}
		if job != nil {
			c.got <- claimedRun{*job, client, time.Now()}
			continue
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(rand.N(250 * time.Millisecond)):
		}
	}
}

func (c *crowd) claimed(ctx context.Context, id api.RunID) (claimedRun, error) {
	select {
	case got := <-c.got:
		if got.job.RunID != id {
			return got, fmt.Errorf("run %s was claimed and not %s", got.job.RunID, id)
		}
		return got, nil
	case err := <-c.failed:
		return claimedRun{}, err
	case <-ctx.Done():
		return claimedRun{}, ctx.Err()
	case <-time.After(10 * time.Second):
		return claimedRun{}, fmt.Errorf("nobody claimed run %s in 10 s", id)
	}
}

// busy is how much of a core the server uses over a time, in percent.
func (s *server) busy(ctx context.Context, during time.Duration) (float64, error) {
	before, err := s.ticks()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(during):
	}
	after, err := s.ticks()
	return 100 * float64(after-before) / ticksASecond / time.Since(begin).Seconds(), err
}

func (s *server) ticks() (sum int, err error) {
	all, err := s.tree()
	for _, p := range all {
		sum += p.ticks
	}
	return sum, err
}

// percentile of the samples: the smallest that so large a part of them does not pass.
func percentile(samples []float64, part float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(samples))
	return s[max(int(math.Ceil(part*float64(len(s))))-1, 0)]
}
