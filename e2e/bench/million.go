package main

import (
	"context"
	"errors"
	"time"
)

// measureMillion trains once on a study of a million items, 50,000 of them labelled by two, and predicts all others. The
// peer is not asked: it keeps everything in memory. Peak memory is that of the server's process.
func measureMillion(ctx context.Context, b *bench) (rows []row, err error) {
	study, err := b.writeStudy("million", shape{items: 1_000_000, labelled: 50_000})
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
	idle, err := s.peak()
	if err != nil {
		return nil, err
	}
	r, err := s.train(ctx, 30*time.Minute)
	if err != nil {
		return nil, err
	}
	peak, err := s.peak()
	if err != nil {
		return nil, err
	}
	b.say("start %.3f s, bundle %.1f s, success %.1f s, memory %.0f MB idle, %.0f MB at the most",
		s.started.Seconds(), r.bundled.Seconds(), r.elapsed.Seconds(), idle, peak)
	one := func(name, what, unit string, value float64, bar *bar) row {
		return row{Name: "million-" + name, What: "1,000,000 items: " + what, Unit: unit, Ours: []float64{value}, Bar: bar}
	}
	return []row{
		one("start", "start to first page", "s", s.started.Seconds(), nil),
		one("bundle", "POST to bundle built", "s", r.bundled.Seconds(), nil),
		one("success", "POST to success", "s", r.elapsed.Seconds(), nil),
		one("idle", "idle memory (peak)", "MB", idle, nil),
		one("memory", "peak memory", "MB", peak, atMost(500, "F3")),
	}, nil
}
