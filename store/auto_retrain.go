package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"potato/api"
)

// Retrain is what automatic retraining remembers over a restart (P10).
type Retrain struct {
	NAnnotations int       // how many there were when it last started a run
	StartedAt    float64   // when that was
	RunID        api.RunID // which run
}

// LastRetrain reads what automatic retraining remembers; the zero value when it never started a run.
func (d *DB) LastRetrain(ctx context.Context) (Retrain, error) {
	var r Retrain
	err := d.r.QueryRowContext(ctx, `SELECT n_annotations, started_at, run_id FROM auto_retrain WHERE id = 1`).
		Scan(&r.NAnnotations, &r.StartedAt, &r.RunID)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return Retrain{}, fmt.Errorf("read the last retraining: %w", err)
	}
	return r, nil
}

func saveRetrain(ctx context.Context, tx *sql.Tx, r Retrain) error {
	_, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO auto_retrain (id, n_annotations, started_at, run_id) VALUES (1, ?, ?, ?)`,
		r.NAnnotations, r.StartedAt, r.RunID)
	if err != nil {
		return fmt.Errorf("remember the retraining: %w", err)
	}
	return nil
}
