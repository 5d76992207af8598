package project_test

import (
	"maps"
	"strings"
	"testing"

	"potato/project"
)

// Where the published tool put these items, seen by running it: seed 0, default shares (PEER.md §3.3).
func TestSplitRule(t *testing.T) {
	f := newFolder(t, moodScheme)
	f.write("items.json", `[{"id":"rev-000","text":""},{"id":"rev-003","text":""},{"id":"rev-004","text":""},{"id":"rev-010","text":""},{"id":"rev-001","text":""}]`)
	answers := map[string]string{}
	for _, id := range []string{"rev-000", "rev-003", "rev-004", "rev-010", "rev-001"} {
		answers[id] = radio("mood", "good")
	}
	f.label("ann", answers)
	b := f.bundle(f.open(), options("mood"))
	got := splitsOf(t, b)
	want := map[string]string{"rev-000": "train", "rev-001": "test", "rev-003": "train", "rev-004": "train", "rev-010": "val"}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func splitsOf(tb testing.TB, b *project.Bundle) map[string]string {
	tb.Helper()
	out := map[string]string{}
	for split := range b.Manifest.Splits {
		for _, row := range rows(tb, b, split) {
			if row != "" {
				out[between(row, `"instance_id": "`, `"`)] = split
			}
		}
	}
	return out
}

// An item stays where it is when others come, and shares need not add up to one.
func TestSplitIsStable(t *testing.T) {
	f := peerFolder(t)
	f.train = "splits: {train: 7, dev: 1.5, test: 1.5}"
	before := splitsOf(t, f.bundle(f.open(), options("mood")))
	f.train = "splits: {train: 0.7, dev: 0.15, test: 0.15}"
	f.write("out/more/user_state.json", state("more", map[string]string{"r1": radio("mood", "good")}))
	f.data = "[items.json, more.jsonl]"
	f.write("more.jsonl", strings.Repeat("\n", 3)+`{"id":"aaa","text":"x"}`)
	f.write("out/most/user_state.json", state("most", map[string]string{"aaa": radio("mood", "good")}))
	after := splitsOf(t, f.bundle(f.open(), options("mood")))
	if len(after) != len(before)+1 {
		t.Errorf("%d items, want %d", len(after), len(before)+1)
	}
	delete(after, "aaa")
	if !maps.Equal(before, after) {
		t.Error("items moved to other splits")
	}
}
