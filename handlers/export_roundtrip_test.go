package handlers_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"potato/agent/agenttest"
	"potato/api"
	"potato/api/pyjson"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/supervisor"
)

// oddIDs are ids as Python holds them, as the study's files write them, and as a CSV cell has to show them.
var oddIDs = []struct{ id, inJSON, inCSV string }{
	{"half \xed\xa0\xbd pair", `half \ud83d pair`, `half \ud83d pair`},
	{"half \xed\xb8\x80 pair", `half \uDE00 pair`, `half \ude00 pair`},
	{`half \ud83d pair`, `half \\ud83d pair`, `half \\ud83d pair`},
	{`half \\ud83d pair`, `half \\\\ud83d pair`, `half \\\\ud83d pair`},
	{"half \\\xed\xa0\xbd pair", `half \\\ud83d pair`, `half \\\ud83d pair`},
	{`half \uD83D pair`, `half \\uD83D pair`, `half \uD83D pair`},
	{`C:\u\udder`, `C:\\u\\udder`, `C:\u\udder`},
	{"half \ufffd pair", "half \ufffd pair", "half \ufffd pair"},
	{"half 😀 pair", `half \ud83d\ude00 pair`, "half 😀 pair"},
	{"\xed\xb8\x80\xed\xa0\xbd", `\ude00\ud83d`, `\ude00\ud83d`},
	{"NUL \x00", `NUL \u0000`, "NUL \x00"},
	{"line\u2028end\u0085", `line\u2028end\u0085`, "line\u2028end\u0085"},
	{"👩\u200d👩\u200d👧 \u200fעברית", "👩\u200d👩\u200d👧 \u200fעברית", "👩\u200d👩\u200d👧 \u200fעברית"},
	{"=1+1", "=1+1", "'=1+1"},
	{"a/b|c", "a/b|c", "a/b|c"},
}

// Every id comes from the data file through bundle, Python worker and database into the page of JSON and both exports, and
// none becomes another on the way (T54).
func TestT54IDsRoundTrip(t *testing.T) {
	c := runnertest.Study(t, "  writeback: {schemas: [sentiment], include_unlabeled: true}\n")
	f, err := os.OpenFile(filepath.Join(c.Dir, "items.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	for _, odd := range oddIDs {
		_, err := fmt.Fprintf(f, `{"id":"%s","text":"of %s"}`+"\n", odd.inJSON, odd.inJSON)
		must(t, err)
	}
	must(t, f.Close())
	s := serveStudy(t, c, func(o *supervisor.Options) {
		o.Runners[api.BackendLocal] = runners.NewLocal(runners.LocalOptions{Config: c, Python: runners.NewPython(c), Shim: agenttest.Shim(t), Poll: 10 * time.Millisecond})
	})
	id := s.trained()

	texts := func(what string, rows []pyjson.Value) map[string]string {
		t.Helper()
		got := map[string]string{}
		for _, row := range rows {
			name, _ := row.Get("instance_id")
			text, _ := row.Get("text")
			if _, twice := got[name.Text]; twice {
				t.Errorf("%s has %+q twice", what, name.Text)
			}
			got[name.Text] = text.Text
		}
		return got
	}
	page, err := pyjson.Parse([]byte(s.get(run(id, "/predictions?limit=1000")).ok(t, 200).text))
	must(t, err)
	list, _ := page.Get("predictions")
	var lines []pyjson.Value
	for line := range bytes.Lines([]byte(s.get(run(id, "/predictions?format=ndjson")).ok(t, 200).text)) {
		row, err := pyjson.Parse(line)
		must(t, err)
		lines = append(lines, row)
	}
	for what, rows := range map[string][]pyjson.Value{"json": list.Elements, "ndjson": lines} {
		got := texts(what, rows)
		for _, odd := range oddIDs {
			if text, ok := got[odd.id]; !ok || text != "of "+odd.id {
				t.Errorf("%s has %+q for %+q (there: %v)", what, text, odd.id, ok)
			}
		}
	}

	file := s.get(run(id, "/predictions?format=csv")).ok(t, 200).text
	if !utf8.ValidString(file) {
		t.Error("csv is not UTF-8")
	}
	table, err := csv.NewReader(strings.NewReader(file)).ReadAll()
	must(t, err)
	cells := map[string]string{}
	for _, row := range table {
		cells[row[0]] = row[7]
	}
	for _, odd := range oddIDs {
		if text, ok := cells[odd.inCSV]; !ok || text != "of "+strings.TrimPrefix(odd.inCSV, "'") {
			t.Errorf("csv has %+q for %+q (there: %v)", text, odd.inCSV, ok)
		}
	}
}

// A text of a megabyte comes whole out of both exports, and cut on a page; so does one that is just too long for a page, and one
// that ends like a cut one (T54). Without the bundle there is only what a page shows.
func TestT54LongTextsAreExportedWhole(t *testing.T) {
	c := runnertest.Study(t, "  writeback: {schemas: [sentiment], include_unlabeled: true}\n")
	long := map[string]string{
		"megabyte": strings.Repeat("ש👩‍👧 ", 80_000) + "end", "just too long": strings.Repeat("é", 500) + "x", "fits": strings.Repeat("é", 500),
		"dots": "and so on…", "long dots": strings.Repeat("é", 499) + "…", "many dots": strings.Repeat("é", 500) + "…", "half": strings.Repeat("a", 600) + "\xed\xa0\xbd",
	}
	f, err := os.OpenFile(filepath.Join(c.Dir, "items.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	for id, text := range long {
		_, err := fmt.Fprintf(f, `{"id":"%s","text":"%s"}`+"\n", id, strings.ReplaceAll(text, "\xed\xa0\xbd", `\ud83d`))
		must(t, err)
	}
	must(t, f.Close())
	s := serveStudy(t, c, func(o *supervisor.Options) {
		o.Runners[api.BackendLocal] = runners.NewLocal(runners.LocalOptions{Config: c, Python: runners.NewPython(c), Shim: agenttest.Shim(t), Poll: 10 * time.Millisecond})
	})
	id := s.trained()
	lines := func() map[string]string {
		got := map[string]string{}
		for line := range bytes.Lines([]byte(s.get(run(id, "/predictions?format=ndjson")).ok(t, 200).text)) {
			row, err := pyjson.Parse(line)
			must(t, err)
			name, _ := row.Get("instance_id")
			text, _ := row.Get("text")
			got[name.Text] = text.Text
		}
		return got
	}
	table, err := csv.NewReader(strings.NewReader(s.get(run(id, "/predictions?format=csv")).ok(t, 200).text)).ReadAll()
	must(t, err)
	cells := map[string]string{}
	for _, row := range table {
		cells[row[0]] = row[7]
	}
	ndjson := lines()
	for id, want := range long {
		if ndjson[id] != want {
			t.Errorf("ndjson has %d bytes of %q, want %d", len(ndjson[id]), id, len(want))
		}
		if want = strings.ReplaceAll(want, "\xed\xa0\xbd", `\ud83d`); cells[id] != want {
			t.Errorf("csv has %d bytes of %q, want %d", len(cells[id]), id, len(want))
		}
	}
	must(t, os.RemoveAll(filepath.Join(c.TrainingPath(), "runs", string(id), "bundle")))
	if got := lines()["just too long"]; got != strings.Repeat("é", 500)+"…" {
		t.Errorf("without the bundle got %q", got)
	}
}
