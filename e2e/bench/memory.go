package main

import "context"

// measureMemory reads the resident memory of both at rest, without a warm worker, children counted in.
func measureMemory(ctx context.Context, b *bench) ([]row, error) {
	r := row{Name: "memory", What: "idle memory (RSS)", Unit: "MB", Bar: atMost(0.25, "F1")}
	err := b.idlePairs(ctx, func(_ context.Context, peer, ours *server) error {
		theirs, err := peer.resident()
		if err != nil {
			return err
		}
		own, err := ours.resident()
		if err != nil {
			return err
		}
		r.Peer = append(r.Peer, theirs)
		r.Ours = append(r.Ours, own)
		b.say("peer %.1f MB, ours %.1f MB", theirs, own)
		return nil
	})
	return []row{r}, err
}
