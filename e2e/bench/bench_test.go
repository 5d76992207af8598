package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRowsAreJudgedByTheirBar(t *testing.T) {
	for _, tt := range []struct {
		row row
		met bool
	}{
		{row{Peer: []float64{1, 9, 2}, Ours: []float64{1, 1, 7}, Bar: atMost(0.5, "F1")}, true},
		{row{Peer: []float64{1, 9, 2}, Ours: []float64{1.1, 1, 7}, Bar: atMost(0.5, "F1")}, false},
		{row{Peer: []float64{2}, Ours: []float64{1}, Bar: atLeast(0.5, "F2")}, true},
		{row{Peer: []float64{2, 3}, Ours: []float64{1}, Bar: atLeast(0.5, "F2")}, false},
		{row{Ours: []float64{500}, Bar: atMost(500, "F3")}, true},
		{row{Ours: []float64{501}, Bar: atMost(500, "F3")}, false},
	} {
		if got := tt.row.judge().Met; got == nil || *got != tt.met {
			t.Errorf("%+v: got %v, want %v", tt.row, got, tt.met)
		}
	}
}

func TestAMissedBarIsPrinted(t *testing.T) {
	r := report{Rows: []row{
		{What: "start", Unit: "s", Peer: []float64{2}, Ours: []float64{0.5}, Bar: atMost(0.1, "F1")},
		{What: "peak", Unit: "MB", Ours: []float64{325}},
	}}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2.00 s", "500 ms", "0.250", "≤ 0.1", "MISSED", "325 MB", "1 of the bars missed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestProcessesWithOddNamesAreRead(t *testing.T) {
	got, err := parseStat("4242 (a) b (c) S 17 4242 4242 0 -1 4194560 120 0 0 0 250 30 0 0 20 0 1 0 99 0 0")
	want := process{pid: 4242, parent: 17, ticks: 280, command: "a) b (c"}
	if err != nil || got != want {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
	if _, err := parseStat("4242 (cut"); err == nil {
		t.Error("half a line is no process")
	}
}

// The same shape gives the same files, or a figure of today could not be held against one of tomorrow.
func TestStudiesAreTheSameEachTime(t *testing.T) {
	b := &bench{dir: t.TempDir(), peer: "/peer"}
	var folders [2]string
	for i := range folders {
		var err error
		if folders[i], err = b.writeStudy("study", shape{items: 50, labelled: 30, freeText: true}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"config.yaml", "data/items.jsonl", "annotation_output/ana/user_state.json", "annotation_output/ben/user_state.json"} {
		var texts [2]string
		for i, folder := range folders {
			text, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
			if err != nil {
				t.Fatal(err)
			}
			texts[i] = string(text)
		}
		if texts[0] != texts[1] || texts[0] == "" {
			t.Errorf("%s differs or is empty", name)
		}
	}
}
