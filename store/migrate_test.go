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
	for _, path := range versions[:len(versions)-1] {
		version, err := goose.NumericComponent(path)
		must(t, err)
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
		if version < 6 { // what items show moved to tables of its own
			_, err = old.Exec(`INSERT INTO published (instance_id, schema_name, run_id, payload, confidence, published_at) VALUES
				('b', 'sentiment', ?1, '{"label":"positive"}', 0.5, 1), ('a', 'sentiment', ?1, '{"label":"negative"}', NULL, 1), ('a', 'mood', ?1, '{"label":"glad"}', 1, 1)`, id)
			must(t, err)
		}
		must(t, old.Close())
		db := mustOpenIn(t, dir)
		if version < 6 {
			shown, err := db.PublishedOf(t.Context(), "a")
			counts, counting := db.CountPublished(t.Context())
			if err != nil || counting != nil || counts[id] != 3 || len(shown) != 2 || shown["sentiment"].Payload.Label != "negative" || *shown["mood"].Confidence != 1 {
				t.Errorf("from version %d: a shows %+v, %v; %v, %v", version, shown, err, counts, counting)
			}
		}
		r, err := db.RunByID(t.Context(), id)
		if err != nil || r.Status != api.RunRunning || r.SchemaNames[0] != "sentiment" {
			t.Errorf("from version %d: %+v, %v", version, r, err)
		}
	}
}
