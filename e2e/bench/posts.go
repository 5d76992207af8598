package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// posts times POST to success on the peer, on this server with every worker started anew, and on this server with a warm
// worker waiting. The three servers stay up, each on its own copy of the study; before a run the annotators' files are
// touched and everything has come to rest.
func (b *bench) posts(ctx context.Context, name, what string, s shape, cold, warm *bar, repeats int) (rows []row, err error) {
	contenders := []*contender{{name: "peer", start: b.startPeer}, {name: "cold", start: b.startOurs}, {name: "warm", start: b.startOurs, warm: true}}
	for _, c := range contenders {
		s.warm = c.warm
		study, failed := b.writeStudy(name+"-"+c.name, s)
		if failed != nil {
			return nil, failed
		}
		if c.server, failed = c.start(ctx, study); failed != nil {
			return nil, failed
		}
		defer func() { err = errors.Join(err, c.server.stop()) }()
	}
	for range repeats {
		for _, c := range contenders {
			if err := c.run(ctx, contenders); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
		}
		if err := sameWork(contenders); err != nil {
			return nil, err
		}
		b.say("peer %.3f s, ours cold %.3f s, warm %.3f s", contenders[0].last(), contenders[1].last(), contenders[2].last())
	}
	return []row{
		{Name: name + "-cold", What: what + ", cold", Unit: "s", Peer: contenders[0].seconds, Ours: contenders[1].seconds, Bar: cold},
		{Name: name + "-warm", What: what + ", warm worker", Unit: "s", Peer: contenders[0].seconds, Ours: contenders[2].seconds, Bar: warm},
	}, nil
}

type contender struct {
	name    string
	warm    bool
	start   func(context.Context, string) (*server, error)
	server  *server
	seconds []float64
	latest  trained
	n       int // predictions of the latest run
}

func (c *contender) last() float64 { return c.seconds[len(c.seconds)-1] }

func (c *contender) run(ctx context.Context, all []*contender) error {
	if err := c.server.annotate(); err != nil {
		return err
	}
	for _, other := range all {
		if other.warm {
			// The Training page asks for this when it opens; it is what keeps a warm worker.
			var trainers struct{}
			if err := other.server.call(ctx, "GET", "trainers", "", &trainers); err != nil {
				return err
			}
		}
		if err := other.server.settle(ctx, other.warm); err != nil {
			return err
		}
	}
	var err error
	if c.latest, err = c.server.train(ctx, 5*time.Minute); err != nil {
		return err
	}
	c.seconds = append(c.seconds, c.latest.elapsed.Seconds())
	c.n, err = c.server.predictions(c.latest)
	return err
}

// sameWork fails when the sides trained on or predicted different numbers of items: then their times compare nothing.
func sameWork(all []*contender) error {
	for _, c := range all[1:] {
		a, z := all[0], c
		if a.latest.NTrain != z.latest.NTrain || a.latest.NVal != z.latest.NVal || a.latest.NTest != z.latest.NTest || a.n != z.n {
			return fmt.Errorf("not the same work: %s had %d/%d/%d rows and %d predictions, %s %d/%d/%d and %d",
				a.name, a.latest.NTrain, a.latest.NVal, a.latest.NTest, a.n,
				z.name, z.latest.NTrain, z.latest.NVal, z.latest.NTest, z.n)
		}
	}
	return nil
}
