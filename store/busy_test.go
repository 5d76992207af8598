package store_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"potato/api"
	"potato/store"
)

// TestT44ManyWritersAndReaders is fifty workers that report steps while pages are read and runs pruned: no call fails.
func TestT44ManyWritersAndReaders(t *testing.T) {
	db := mustOpen(t)
	ids := make([]api.RunID, 50)
	for i := range ids {
		ids[i] = mustRun(t, db, api.RunRunning)
	}
	for range 20 {
		mustSuccess(t, db)
	}
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	var all sync.WaitGroup
	loop := func(call func(i int) error) {
		all.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := call(i); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	step := "fitting"
	for _, id := range ids {
		loop(func(i int) error {
			return db.UpdateRun(context.Background(), id, store.RunUpdate{Step: &step, Progress: &api.Progress{Current: float64(i)}})
		})
	}
	for range 4 {
		loop(func(int) error {
			_, _, err := db.Runs(context.Background(), store.RunFilter{})
			return err
		})
	}
	loop(func(int) error {
		prunable, err := db.PrunableRuns(context.Background(), 60)
		for _, id := range prunable {
			if err := db.PruneRun(context.Background(), id); err != nil {
				return err
			}
		}
		return err
	})
	all.Wait()
}

// TestAnotherProgramHoldsTheDatabase is a backup that keeps the write lock for longer than we wait: one sentence, and no
// internal error. It takes as long as the wait.
func TestAnotherProgramHoldsTheDatabase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := mustOpenIn(t, dir)
	id := mustRun(t, db, api.RunRunning)
	other, err := sql.Open("sqlite", "file:"+filepath.Join(dir, store.FileName)+"?_txlock=exclusive")
	must(t, err)
	defer other.Close()
	tx, err := other.BeginTx(t.Context(), nil)
	must(t, err)
	step := "fitting"
	err = db.UpdateRun(t.Context(), id, store.RunUpdate{Step: &step})
	if e := api.AsError(err); e.Code != "database_busy" || e.Kind != api.KindUnavailable || e.Hint == "" {
		t.Errorf("got %v (%s), want database_busy", err, e.Code)
	}
	must(t, tx.Rollback())
	must(t, db.UpdateRun(t.Context(), id, store.RunUpdate{Step: &step}))
}
