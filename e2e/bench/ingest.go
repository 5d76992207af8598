package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"potato/api"
	"potato/store"
)

const (
	ingestRows = 1_000_000
	ingestRun  = api.RunID("20261129T120000-0a1b2c")
)

// measureIngest stores a million predictions from a worker's file: parsing, the rules, the check against the run's items
// and the insert. Beside it the sqlite3 shell imports the same rows from CSV into a table of the same form.
func measureIngest(ctx context.Context, b *bench) ([]row, error) {
	if _, err := exec.LookPath("sqlite3"); err != nil {
		return nil, errors.New("the sqlite3 shell is missing; its Debian package is sqlite3")
	}
	dir := b.folder("ingest")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "predictions.jsonl")
	if err := writePredictions(file); err != nil {
		return nil, err
	}
	r := row{
		Name: "ingest", What: "1,000,000 predictions stored, rows a second", Unit: "/s", Against: "sqlite3 .import", Bar: atLeast(0.5, "F2"),
	}
	for i := range min(b.repeats, 3) {
		ours := filepath.Join(dir, fmt.Sprintf("ours-%d", i))
		own, err := storePredictions(ctx, ours, file)
		if err != nil {
			return nil, err
		}
		csv := filepath.Join(dir, "predictions.csv")
		table, err := exportTable(ctx, filepath.Join(ours, store.FileName), csv)
		if err != nil {
			return nil, err
		}
		theirs, err := importTable(ctx, filepath.Join(dir, fmt.Sprintf("shell-%d.sqlite", i)), csv, table)
		if err != nil {
			return nil, err
		}
		r.Ours = append(r.Ours, ingestRows/own.Seconds())
		r.Peer = append(r.Peer, ingestRows/theirs.Seconds())
		b.say("sqlite3 .import %.2f s, ours %.2f s", theirs.Seconds(), own.Seconds())
	}
	return []row{r}, nil
}

// writePredictions writes what a worker would: label, confidence and the probability of each label.
func writePredictions(path string) error {
	return writeLines(path, func(w *bufio.Writer) error {
		for i := range ingestRows {
			p := 0.5 + float64(i%499_999)/1e6
			_, err := fmt.Fprintf(w, `{"instance_id":"%s","schema_name":"sentiment","payload":{"label":"positive","confidence":%.6f,`+
				`"scores":{"negative":%.6f,"positive":%.6f}},"confidence":%.6f}`+"\n", itemID(i), p, 1-p, p, p)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// storePredictions brings a run to where its predictions are taken, as the supervisor does, and times that.
func storePredictions(ctx context.Context, dir, file string) (_ time.Duration, err error) {
	db, err := store.Open(ctx, dir, time.Now)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	scheme := api.Scheme{Name: "sentiment", AnnotationType: "radio", Kind: api.KindNominal, Labels: classes}
	err = errors.Join(
		db.CreateRun(ctx, api.Run{
			RunID: ingestRun, Trainer: "sklearn-text", SchemaNames: []string{"sentiment"}, Kinds: []api.SchemeKind{api.KindNominal},
			Backend: "local", Trigger: api.TriggerAPI, CreatedAt: float64(time.Now().Unix()),
		}, nil),
		db.MoveRun(ctx, ingestRun, api.RunQueued, api.RunBuilding, store.RunUpdate{}),
		db.StoreRunItems(ctx, ingestRun, ingestItems),
		db.MoveRun(ctx, ingestRun, api.RunBuilding, api.RunRunning, store.RunUpdate{}),
	)
	if err != nil {
		return 0, err
	}
	rules := api.NewPredictionRules(api.Manifest{Schemas: []api.Scheme{scheme}})
	begin := time.Now()
	in, err := os.Open(file)
	if err != nil {
		return 0, err
	}
	defer in.Close() //nolint:errcheck // it was read
	n, err := db.StorePredictions(ctx, ingestRun, api.ReadPredictions(in), rules.Check)
	if err == nil && n != ingestRows {
		err = fmt.Errorf("%d predictions were stored, not %d", n, ingestRows)
	}
	return time.Since(begin), err
}

// ingestItems are those of a run on a large study: one in twenty is held out and has a target, nobody labelled the rest.
func ingestItems(yield func(api.BundleItem, error) bool) {
	for i := range ingestRows {
		item := api.BundleItem{InstanceID: itemID(i), Split: api.SplitUnlabeled, Text: itemID(i)}
		if i < ingestRows/20 {
			item.Split, item.Targets = api.SplitVal, map[string][]string{"sentiment": {class(i)}}
		}
		if !yield(item, nil) {
			return
		}
	}
}

// exportTable writes the stored rows as CSV and returns the statement that makes their table. The shell gives every
// value as text, so the copy is not strict about types.
func exportTable(ctx context.Context, database, csv string) (string, error) {
	out, err := os.Create(csv)
	if err != nil {
		return "", err
	}
	dump := exec.CommandContext(ctx, "sqlite3", "-csv", database, "SELECT * FROM predictions ORDER BY run_id, n")
	dump.Stdout, dump.Stderr = out, os.Stderr
	if err := errors.Join(dump.Run(), out.Close()); err != nil {
		return "", err
	}
	table, err := exec.CommandContext(ctx, "sqlite3", database, "SELECT sql FROM sqlite_schema WHERE name = 'predictions'").Output()
	return strings.Replace(string(table), "STRICT, WITHOUT ROWID", "WITHOUT ROWID", 1), err
}

func importTable(ctx context.Context, database, csv, table string) (time.Duration, error) {
	begin := time.Now()
	shell := exec.CommandContext(ctx, "sqlite3", "-bail", database)
	shell.Stdin = strings.NewReader("PRAGMA journal_mode=WAL;\nPRAGMA synchronous=NORMAL;\n" + table + ";\n.import --csv " + csv + " predictions\n")
	if out, err := shell.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("sqlite3: %w\n%s", err, out)
	}
	elapsed := time.Since(begin)
	count, err := exec.CommandContext(ctx, "sqlite3", database, "SELECT count(*) FROM predictions").Output()
	if err == nil && strings.TrimSpace(string(count)) != fmt.Sprint(ingestRows) {
		err = fmt.Errorf("the sqlite3 shell imported %s rows, not %d", strings.TrimSpace(string(count)), ingestRows)
	}
	return elapsed, err
}
