package store_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"potato/api"
	"potato/store"
)

// A database of every earlier version is brought up to date, with the runs that it has.
func TestEarlierDatabases(t *testing.T) {
	versions, err := filepath.Glob("migrations/*.sql")
	must(t, err)
	for version := int64(1); version < int64(len(versions)); version++ {
		dir := t.TempDir()
		old, err := sql.Open("sqlite", filepath.Join(dir, store.FileName))
		must(t, err)
		p, err := goose.NewProvider(goose.DialectSQLite3, old, os.DirFS("migrations"))
		must(t, err)
		_, err = p.UpTo(t.Context(), version)
		must(t, err)
		const id = "20260101T000000-abcdef"
		_, err = old.Exec(`INSERT INTO runs (run_id, status, trainer, schema_names, kinds, backend, trigger, created_by, created_at, params)
			VALUES (?, 'running', 'sklearn-text', '["sentiment"]', '["nominal"]', 'local', 'api', 'admin', 1, '{}')`, id)
		must(t, err)
		must(t, old.Close())
		r, err := mustOpenIn(t, dir).RunByID(t.Context(), id)
		if err != nil || r.Status != api.RunRunning || r.SchemaNames[0] != "sentiment" {
			t.Errorf("from version %d: %+v, %v", version, r, err)
		}
	}
}
