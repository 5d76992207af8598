package main

import (
	"context"
	"errors"
)

// measureStart times the command to the first page, on a study that both have opened before.
func measureStart(ctx context.Context, b *bench) ([]row, error) {
	r := row{Name: "start", What: "start to first page", Unit: "s", Bar: atMost(0.1, "F1")}
	err := b.idlePairs(ctx, func(_ context.Context, peer, ours *server) error {
		r.Peer = append(r.Peer, peer.started.Seconds())
		r.Ours = append(r.Ours, ours.started.Seconds())
		b.say("peer %.3f s, ours %.3f s", peer.started.Seconds(), ours.started.Seconds())
		return nil
	})
	return []row{r}, err
}

// idlePairs starts both products in turn, as often as asked, and hands them over at rest. A first start that makes their
// files is not counted.
func (b *bench) idlePairs(ctx context.Context, sample func(ctx context.Context, peer, ours *server) error) error {
	peerStudy, err := b.writeStudy("peer", smallStudy)
	if err != nil {
		return err
	}
	ourStudy, err := b.writeStudy("ours", smallStudy)
	if err != nil {
		return err
	}
	for i := range b.repeats + 1 {
		err := b.idlePair(ctx, peerStudy, ourStudy, func(ctx context.Context, peer, ours *server) error {
			if i == 0 {
				return nil
			}
			return sample(ctx, peer, ours)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) idlePair(ctx context.Context, peerStudy, ourStudy string, sample func(ctx context.Context, peer, ours *server) error) (err error) {
	peer, err := b.startPeer(ctx, peerStudy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, peer.stop()) }()
	if err := peer.settle(ctx, false); err != nil {
		return err
	}
	ours, err := b.startOurs(ctx, ourStudy)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ours.stop()) }()
	if err := ours.settle(ctx, false); err != nil {
		return err
	}
	return sample(ctx, peer, ours)
}
