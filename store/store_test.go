package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"potato/api"
	"potato/store"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(killedEnv); dir != "" {
		publishUntilKilled(dir)
	}
	goleak.VerifyTestMain(m)
}

// mustOpen opens a database in a folder of the test's own.
func mustOpen(tb testing.TB) *store.DB {
	tb.Helper()
	return mustOpenIn(tb, tb.TempDir())
}

func mustOpenIn(tb testing.TB, dir string) *store.DB {
	tb.Helper()
	db, err := store.Open(tb.Context(), dir, time.Now)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Error(err)
		}
	})
	return db
}

// mustRun adds a run and takes it to the state, as the supervisor does.
func mustRun(tb testing.TB, db *store.DB, to api.RunStatus) api.RunID {
	tb.Helper()
	id := api.NewRunID(time.Now())
	r := api.Run{
		RunID: id, Trainer: "sklearn-text", SchemaNames: []string{"sentiment"}, Kinds: []api.SchemeKind{api.KindNominal},
		Backend: "local", Trigger: api.TriggerAPI, CreatedBy: "admin", CreatedAt: float64(time.Now().UnixNano()) / 1e9,
	}
	must(tb, db.CreateRun(tb.Context(), r, nil))
	way := []api.RunStatus{api.RunQueued, api.RunBuilding, api.RunRunning, api.RunEvaluating, api.RunSuccess}
	for i := 0; way[i] != to; i++ {
		must(tb, db.MoveRun(tb.Context(), id, way[i], way[i+1], store.RunUpdate{}))
	}
	return id
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// each makes the iterator that the store reads from.
func each[T any](rows ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if !api.HasCode(err, code) {
		t.Fatalf("got error %v, want code %s", err, code)
	}
}

func TestFolderAndFilesArePrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "training")
	db := mustOpenIn(t, dir)
	mustRun(t, db, api.RunQueued)
	for name, want := range map[string]os.FileMode{"": 0o700, store.FileName: 0o600, store.FileName + "-wal": 0o600, store.FileName + "-shm": 0o600} {
		st, err := os.Stat(filepath.Join(dir, name))
		must(t, err)
		if got := st.Mode().Perm(); got != want {
			t.Errorf("%q: got mode %o, want %o", name, got, want)
		}
	}
}

func TestReopenKeepsRuns(t *testing.T) {
	dir := t.TempDir()
	db, err := store.Open(t.Context(), dir, time.Now)
	must(t, err)
	id := mustRun(t, db, api.RunRunning)
	must(t, db.UpdateRun(t.Context(), id, store.RunUpdate{Handle: &api.Handle{Pid: 7, Dir: "/job"}, Warn: []string{"w"}}))
	must(t, db.UpdateRun(t.Context(), id, store.RunUpdate{Warn: []string{"w", "x"}}))
	must(t, db.Close())
	got, err := mustOpenIn(t, dir).RunByID(t.Context(), id)
	must(t, err)
	if got.Status != api.RunRunning || got.Handle == nil || got.Handle.Pid != 7 || strings.Join(got.Warnings, ",") != "w,x" {
		t.Fatalf("got %+v", got)
	}
}

func TestSecondServerIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	l, err := store.LockDir(dir, time.Now())
	must(t, err)
	must(t, l.Announce("http://127.0.0.1:8000"))
	_, err = store.LockDir(dir, time.Now())
	wantCode(t, err, "study_in_use")
	if !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) || !strings.Contains(err.Error(), "http://127.0.0.1:8000") {
		t.Errorf("got %q, want pid and address in it", err)
	}
	must(t, l.Unlock())
	l, err = store.LockDir(dir, time.Now())
	must(t, err)
	must(t, l.Unlock())
}

// R6: a child that a killed server had forked, and that is not its own program yet, holds the lock for moments.
func TestLockWaitsForWhatAKilledServerForked(t *testing.T) {
	dir := t.TempDir()
	child, err := os.OpenFile(filepath.Join(dir, store.LockName), os.O_RDWR|os.O_CREATE, 0o600)
	must(t, err)
	must(t, unix.Flock(int(child.Fd()), unix.LOCK_EX))
	timer := time.AfterFunc(200*time.Millisecond, func() { _ = child.Close() })
	defer timer.Stop()
	l, err := store.LockDir(dir, time.Now())
	must(t, err)
	must(t, l.Unlock())
}

// A database that cannot be used is left as it is, and one sentence says what to do.
func TestDatabasesThatCannotBeUsed(t *testing.T) {
	for code, spoil := range map[string]func(path string) error{
		"database_damaged": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("junk", 4000)), 0o600) },
		"training_dir":     func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
		"database_newer": func(path string) error {
			db, err := sql.Open("sqlite", path)
			if err == nil {
				_, err = db.Exec(`INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, 1)`)
			}
			return errors.Join(err, db.Close())
		},
	} {
		t.Run(code, func(t *testing.T) {
			dir := t.TempDir()
			db, err := store.Open(t.Context(), dir, time.Now)
			must(t, err)
			must(t, db.Close())
			path := filepath.Join(dir, store.FileName)
			must(t, spoil(path))
			before, _ := os.ReadFile(path)
			_, err = store.Open(t.Context(), dir, time.Now)
			if e := api.AsError(err); e.Code != code || !strings.Contains(e.Message, "training") || e.Hint == "" {
				t.Errorf("got %v (%s: %s), want %s", err, e.Code, e.Hint, code)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
	dir := filepath.Join(t.TempDir(), "training")
	must(t, os.WriteFile(dir, nil, 0o600))
	if _, err := store.Open(t.Context(), dir, time.Now); !api.HasCode(err, "training_dir") {
		t.Errorf("a file in place of the folder: got %v", err)
	}
	if _, err := store.LockDir(dir, time.Now()); !api.HasCode(err, "training_dir") {
		t.Errorf("a file in place of the folder: got %v", err)
	}
}

// A clock that is set back during a run makes no negative duration.
func TestClockIsSetBack(t *testing.T) {
	db := mustOpen(t)
	id := mustRun(t, db, api.RunEvaluating)
	started, finished := 2000.0, 1000.0
	must(t, db.UpdateRun(t.Context(), id, store.RunUpdate{StartedAt: &started}))
	must(t, db.MoveRun(t.Context(), id, api.RunEvaluating, api.RunSuccess, store.RunUpdate{FinishedAt: &finished}))
	r, err := db.RunByID(t.Context(), id)
	must(t, err)
	if r.Duration == nil || *r.Duration != 0 {
		t.Errorf("got a duration of %v, want 0", r.Duration)
	}
}

func TestMoveRunLetsOneWin(t *testing.T) {
	db := mustOpen(t)
	id := mustRun(t, db, api.RunQueued)
	errs := make(chan error)
	for range 8 {
		go func() {
			errs <- db.MoveRun(context.Background(), id, api.RunQueued, api.RunBuilding, store.RunUpdate{})
		}()
	}
	won := 0
	for range 8 {
		if err := <-errs; err == nil {
			won++
		} else {
			wantCode(t, err, "run_moved")
		}
	}
	if won != 1 {
		t.Fatalf("got %d winners, want 1", won)
	}
	wantCode(t, db.MoveRun(t.Context(), "20260101T000000-000000", api.RunQueued, api.RunBuilding, store.RunUpdate{}), "run_not_found")
}

func TestRequestCancel(t *testing.T) {
	db := mustOpen(t)
	for status, code := range map[api.RunStatus]string{
		api.RunQueued: "", api.RunBuilding: "", api.RunRunning: "", api.RunEvaluating: "too_late", api.RunSuccess: "run_over",
	} {
		id := mustRun(t, db, status)
		was, err := db.RequestCancel(t.Context(), id)
		if code != "" {
			wantCode(t, err, code)
			continue
		}
		must(t, err)
		got, err := db.RunByID(t.Context(), id)
		must(t, err)
		if was != status || !got.CancelRequested {
			t.Errorf("%s: got state %s, flag %v", status, was, got.CancelRequested)
		}
	}
}
