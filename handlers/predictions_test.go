package handlers_test

import (
	"bufio"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"potato/api"
	"potato/project"
	"potato/runners/runnertest"
	"potato/store"
)

// hard is a study whose unlabelled items have texts that break things (T54).
func hard(t *testing.T) (*project.Config, []string) {
	c := runnertest.Study(t, "  writeback: {schemas: [sentiment], include_unlabeled: true}\n")
	texts := []string{
		"=HYPERLINK(\"http://evil.example\")", "+1", "-1+2", "@SUM(A1)", "\ttab", "\rreturn", "'quoted", "plain", "", " ",
		"comma, \"quote\" and\nline", "crlf\r\nline", "emoji 👩‍👩‍👧 and RTL \u200fעברית", "NUL \x00 inside", "\ufeffmark", "a/b|c\\d", "\u2028line", "<script>&amp;",
	}
	f, err := os.OpenFile(filepath.Join(c.Dir, "items.jsonl"), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	defer f.Close()
	for i, text := range texts {
		line, err := json.Marshal(map[string]string{"id": fmt.Sprintf("hard-%02d", i), "text": text})
		must(t, err)
		_, err = fmt.Fprintf(f, "%s\n", line)
		must(t, err)
	}
	_, err = fmt.Fprintf(f, `{"id":"=cmd()|' /C calc'!A0","text":"an id that is a formula"}`+"\n")
	must(t, err)
	return c, texts
}

func TestPredictions(t *testing.T) {
	s := films(t, "")
	id := s.trained()
	list := func(query string) api.PredictionList {
		t.Helper()
		return decode[api.PredictionList](t, s.get(run(id, "/predictions?"+query)).ok(t, 200))
	}
	all := list("limit=1000")
	if all.Total == 0 || all.Total != len(all.Predictions) || all.Next != "" {
		t.Fatalf("total %d, %d rows, next %q", all.Total, len(all.Predictions), all.Next)
	}
	var paged []api.PredictionRow
	for next := ""; ; {
		page := list("limit=3&cursor=" + next)
		paged = append(paged, page.Predictions...)
		if next = page.Next; next == "" {
			break
		}
	}
	if len(paged) != all.Total {
		t.Errorf("pages have %d rows, want %d", len(paged), all.Total)
	}
	for i, p := range paged {
		if p.InstanceID != all.Predictions[i].InstanceID {
			t.Errorf("row %d is %s, want %s", i, p.InstanceID, all.Predictions[i].InstanceID)
		}
	}
	for query, keep := range map[string]func(api.PredictionRow) bool{
		"split=test":                    func(p api.PredictionRow) bool { return p.Split == "test" },
		"wrong=true":                    func(p api.PredictionRow) bool { return p.Correct != nil && !*p.Correct },
		"label=positive":                func(p api.PredictionRow) bool { return true },
		"label=negative":                func(p api.PredictionRow) bool { return false },
		"target=negative":               func(p api.PredictionRow) bool { return slices.Contains(p.Target, "negative") },
		"target=positive&wrong=true":    func(p api.PredictionRow) bool { return false },
		"q=film+NUMBER":                 func(p api.PredictionRow) bool { return true },
		"q=" + paged[0].InstanceID:      func(p api.PredictionRow) bool { return p.InstanceID == paged[0].InstanceID },
		"schema=sentiment":              func(p api.PredictionRow) bool { return true },
		"schema=other":                  func(p api.PredictionRow) bool { return false },
		"q=100%25":                      func(p api.PredictionRow) bool { return false },
		"split=val&label=positive&q=-0": func(p api.PredictionRow) bool { return p.Split == "val" && strings.Contains(p.InstanceID, "-0") },
	} {
		want := 0
		for _, p := range all.Predictions {
			if keep(p) {
				want++
			}
		}
		if got := list("limit=1000&" + query); got.Total != want || len(got.Predictions) != want {
			t.Errorf("%s: total %d, %d rows, want %d", query, got.Total, len(got.Predictions), want)
		}
	}
	for _, query := range []string{"format=xml", "split=train", "limit=0", "limit=1001", "wrong=maybe"} {
		s.get(run(id, "/predictions?"+query)).refused(t, 422, "invalid_request")
	}
	s.get(run(id, "/predictions?cursor=abc")).refused(t, 422, "bad_cursor")
}

// What goes in comes out of both exports as it was; csv alone marks what a spreadsheet would run (T54).
func TestT54Export(t *testing.T) {
	c, texts := hard(t)
	s := serveStudy(t, c, nil)
	id := s.trained()
	want := map[string]string{"=cmd()|' /C calc'!A0": "an id that is a formula"}
	for i, text := range texts {
		want[fmt.Sprintf("hard-%02d", i)] = text
	}

	a := s.get(run(id, "/predictions?format=ndjson")).ok(t, 200)
	if got := a.Header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("content type %q", got)
	}
	if got, name := a.Header.Get("Content-Disposition"), "predictions-"+string(id)+".ndjson"; got != "attachment; filename="+name {
		t.Errorf("disposition %q", got)
	}
	rows, found := 0, 0
	for lines := bufio.NewScanner(strings.NewReader(a.text)); lines.Scan(); rows++ {
		var p api.PredictionRow
		must(t, json.Unmarshal(lines.Bytes(), &p))
		if text, ok := want[p.InstanceID]; ok {
			found++
			if p.Text != text {
				t.Errorf("ndjson has %q for %s, want %q", p.Text, p.InstanceID, text)
			}
		}
	}
	if found != len(want) {
		t.Errorf("ndjson has %d of %d hard items", found, len(want))
	}

	a = s.get(run(id, "/predictions?format=csv")).ok(t, 200)
	if got := a.Header.Get("Content-Type"); got != "text/csv; charset=utf-8; header=present" {
		t.Errorf("content type %q", got)
	}
	// The reader of encoding/csv drops a carriage return before a line feed inside quotes, so it is looked for by hand.
	if !strings.Contains(a.text, "\"crlf\r\nline\"") {
		t.Error("a carriage return was lost")
	}
	table, err := csv.NewReader(strings.NewReader(a.text)).ReadAll()
	must(t, err)
	if len(table) != rows+1 || strings.Join(table[0], " ") != "instance_id schema_name split label confidence target correct text scores" {
		t.Errorf("%d lines, head %v", len(table), table[0])
	}
	found = 0
	for _, row := range table[1:] {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("a spreadsheet runs %q", cell)
			}
		}
		bare := strings.TrimPrefix(row[0], "'")
		text, ok := want[bare]
		if !ok {
			continue
		}
		found++
		if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
			text = "'" + text
		}
		if got := row[7]; got != strings.ReplaceAll(text, "\r\n", "\n") {
			t.Errorf("csv has %q for %s, want %q", got, bare, text)
		}
		if row[1] != "sentiment" || row[2] != "unlabeled" || row[3] != "positive" || row[4] != "0.75" || row[5] != "" || row[6] != "" || row[8] != `{"positive":0.75}` {
			t.Errorf("got %q", row)
		}
	}
	if found != len(want) {
		t.Errorf("csv has %d of %d hard items", found, len(want))
	}
	held, err := csv.NewReader(strings.NewReader(s.get(run(id, "/predictions?format=csv&split=test&wrong=true")).text)).ReadAll()
	must(t, err)
	if len(held) < 2 || held[1][5] != "negative" || held[1][6] != "false" {
		t.Errorf("got %q", held)
	}
	if a := s.do("HEAD", run(id, "/predictions?format=csv"), nil).ok(t, 200); a.text != "" {
		t.Error("HEAD has a body")
	}
}

func TestWritebackAndRetract(t *testing.T) {
	s := films(t, "  writeback: {schemas: [sentiment], include_unlabeled: true}\n")
	id := s.trained()
	again := decode[api.Writeback](t, s.do("POST", run(id, "/writeback"), object{"dry_run": true}).ok(t, 200))
	if again.NRead == 0 || again.NWritten == 0 || !slices.Equal(again.SchemasEnabled, []string{"sentiment"}) {
		t.Errorf("got %+v", again)
	}
	if got := decode[map[string]int](t, s.do("DELETE", run(id, "/predictions"), nil).ok(t, 200)); got["retracted"] != again.NWritten {
		t.Errorf("retracted %d, want %d", got["retracted"], again.NWritten)
	}
	if got := decode[map[string]int](t, s.do("DELETE", run(id, "/predictions"), nil).ok(t, 200)); got["retracted"] != 0 {
		t.Errorf("retracted %d twice", got["retracted"])
	}
	s.do("POST", run(id, "/writeback"), "{}").ok(t, 200)
	if got := decode[map[string]int](t, s.do("DELETE", run(id, "/predictions"), nil).ok(t, 200)); got["retracted"] != again.NWritten {
		t.Errorf("retracted %d after publishing again, want %d", got["retracted"], again.NWritten)
	}
	failed := s.train(object{"fail": "no"})
	s.await(failed, api.RunError)
	s.do("POST", run(failed, "/writeback"), "{}").refused(t, 409, "no_predictions")
	s.do("POST", run(id, "/writeback"), `{"dryrun":true}`).refused(t, 422, "invalid_request")
}

// An export that fails half-way must not look whole.
func TestBrokenExportIsNoExport(t *testing.T) {
	s := films(t, "")
	id := s.trained()
	db, err := sql.Open("sqlite", filepath.Join(s.config.TrainingPath(), store.FileName))
	must(t, err)
	_, err = db.Exec(`UPDATE predictions SET payload = '{' WHERE n = (SELECT max(n) FROM predictions)`)
	must(t, err)
	must(t, db.Close())
	for _, format := range []string{"csv", "ndjson"} {
		resp, err := client.Do(s.request("GET", run(id, "/predictions?format="+format), nil))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			must(t, resp.Body.Close())
		}
		if err == nil {
			t.Errorf("the %s looks whole", format)
		}
	}
	if !strings.Contains(s.logs.String(), "export broke off") {
		t.Errorf("the log says nothing:\n%s", s.logs)
	}
}
