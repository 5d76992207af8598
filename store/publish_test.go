package store_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"potato/api"
	"potato/store"
)

const manyItems = 12_000 // those of six transactions of a publication

func itemNumber(i int) string { return fmt.Sprintf("item-%05d", i) }

// mustMany is a run that has predicted the label for many items.
func mustMany(tb testing.TB, db *store.DB, label string) api.RunID {
	tb.Helper()
	id := mustRun(tb, db, api.RunBuilding)
	must(tb, db.StoreRunItems(tb.Context(), id, func(yield func(api.BundleItem, error) bool) {
		for i := range manyItems {
			if !yield(api.BundleItem{InstanceID: itemNumber(i), Split: api.SplitUnlabeled}, nil) {
				return
			}
		}
	}))
	must(tb, db.MoveRun(tb.Context(), id, api.RunBuilding, api.RunRunning, store.RunUpdate{}))
	_, err := db.StorePredictions(tb.Context(), id, func(yield func(api.Prediction, error) bool) {
		for i := range manyItems {
			if !yield(prediction(itemNumber(i), label, 0.5), nil) {
				return
			}
		}
	}, anyLabel)
	must(tb, err)
	must(tb, db.MoveRun(tb.Context(), id, api.RunRunning, api.RunEvaluating, store.RunUpdate{}))
	must(tb, db.MoveRun(tb.Context(), id, api.RunEvaluating, api.RunSuccess, store.RunUpdate{}))
	return id
}

// shows says which run's predictions the first, a middle and the last item show.
func shows(tb testing.TB, db *store.DB) (runs [3]api.RunID) {
	tb.Helper()
	for i, item := range []int{0, manyItems / 2, manyItems - 1} {
		shown, err := db.PublishedOf(tb.Context(), itemNumber(item))
		must(tb, err)
		runs[i] = shown["sentiment"].RunID
	}
	return runs
}

// While a publication is written other writers get their turn, and items show what they did, until all show the new one.
func TestPublishingKeepsNobodyWaiting(t *testing.T) {
	db := mustOpen(t)
	first, second := mustMany(t, db, "positive"), mustMany(t, db, "negative")
	must(t, db.PublishPredictions(t.Context(), first, sentiment, showAll))
	step, n := "elsewhere", 0
	must(t, db.PublishPredictions(t.Context(), second, sentiment, func(store.Candidate) bool {
		if n++; n%1000 != 0 {
			return true
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := db.UpdateRun(ctx, first, store.RunUpdate{Step: &step}); err != nil {
			t.Fatalf("another writer at row %d: %v", n, err)
		}
		if got := shows(t, db); got != [3]api.RunID{first, first, first} {
			t.Fatalf("at row %d items show %v, want all %s", n, got, first)
		}
		return true
	}))
	if got := shows(t, db); got != [3]api.RunID{second, second, second} {
		t.Errorf("items show %v, want all %s", got, second)
	}
}

const killedEnv = "STORE_TEST_KILLED_IN"

// publishUntilKilled publishes a run and is killed before its last transaction.
func publishUntilKilled(dir string) {
	db, err := store.Open(context.Background(), dir, time.Now)
	if err == nil {
		var latest *store.Run
		if latest, err = db.LatestRun(context.Background()); err == nil {
			n := 0
			err = db.PublishPredictions(context.Background(), latest.RunID, sentiment, func(store.Candidate) bool {
				if n++; n == manyItems-1 {
					_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
					select {}
				}
				return true
			})
		}
	}
	fmt.Fprintln(os.Stderr, "not killed:", err)
	os.Exit(1)
}

// A server that is killed in the middle of publishing leaves items as they were; publishing again is as if nothing had been.
func TestKilledWhilePublishing(t *testing.T) {
	dir := t.TempDir()
	db := mustOpenIn(t, dir)
	first, second := mustMany(t, db, "positive"), mustMany(t, db, "negative")
	must(t, db.PublishPredictions(t.Context(), first, sentiment, showAll))
	kill := exec.CommandContext(t.Context(), os.Args[0])
	kill.Env = append(os.Environ(), killedEnv+"="+dir)
	out, err := kill.CombinedOutput()
	if s, ok := kill.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %s", err, out)
	}
	raw, err := sql.Open("sqlite", filepath.Join(dir, store.FileName))
	must(t, err)
	defer raw.Close()
	rows := func() (n int) {
		t.Helper()
		must(t, raw.QueryRow(`SELECT count(*) FROM published`).Scan(&n))
		return n
	}
	if n := rows(); n != manyItems+10_000 {
		t.Fatalf("%d rows after the kill, want all but those of the last transaction beside the %d that items show", n, manyItems)
	}
	counts, err := db.CountPublished(t.Context())
	if got := shows(t, db); err != nil || got != [3]api.RunID{first, first, first} || counts[first] != manyItems || counts[second] != 0 {
		t.Errorf("after the kill items show %v, counted %v, %v", got, counts, err)
	}
	for range 2 {
		must(t, db.PublishPredictions(t.Context(), second, sentiment, showAll))
		counts, err := db.CountPublished(t.Context())
		if got := shows(t, db); err != nil || got != [3]api.RunID{second, second, second} || counts[second] != manyItems || counts[first] != 0 {
			t.Errorf("published again: items show %v, counted %v, %v", got, counts, err)
		}
		if n := rows(); n != manyItems {
			t.Errorf("%d rows are left, want %d", n, manyItems)
		}
	}
	n, err := db.RetractPredictions(t.Context(), second)
	if left := rows(); err != nil || n != manyItems || left != 0 {
		t.Errorf("retracted %d, %v, want %d; %d rows are left", n, err, manyItems, left)
	}
}
