package main

import "context"

func measureLarge(ctx context.Context, b *bench) ([]row, error) {
	s := shape{items: 10_000, labelled: 5_000}
	return b.posts(ctx, "large", "5,000 labelled of 10,000", s, atMost(0.4, "F1"), atMost(0.4, "F1"), b.repeats)
}
