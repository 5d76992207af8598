package main

import "context"

// measureFreeText trains on a radio scheme beside which every annotator wrote a sentence of their own on every item. A
// run takes the peer half a minute, so there are no more than three pairs.
func measureFreeText(ctx context.Context, b *bench) ([]row, error) {
	s := shape{items: 1_500, labelled: 1_500, freeText: true}
	return b.posts(ctx, "free-text", "1,500 with free text beside", s, atMost(0.1, "F1"), atMost(0.1, "F1"), min(b.repeats, 3))
}
