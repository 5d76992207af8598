package main

import "context"

// smallStudy is the size at which a pilot trains for the first time.
var smallStudy = shape{items: 120, labelled: 60}

func measureSmall(ctx context.Context, b *bench) ([]row, error) {
	return b.posts(ctx, "small", "60 labelled of 120", smallStudy, atMost(0.85, "F1"), atMost(0.25, "F1"), b.repeats)
}
