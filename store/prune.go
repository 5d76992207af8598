package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"potato/api"
)

// final lists the states of runs that have ended, for SQL.
var final = func() string {
	text := ""
	for _, status := range api.RunStatuses() {
		if status.Final() {
			text += ", '" + string(status) + "'"
		}
	}
	return "(" + text[2:] + ")"
}()

// prunable is the condition of a run that retention may empty: ended, not emptied yet, and shown by no item (R11).
var prunable = `status IN ` + final + ` AND pruned_at IS NULL
	AND NOT EXISTS (SELECT 1 FROM shown JOIN publications USING (publication) WHERE publications.run_id = runs.run_id)`

// PrunableRuns lists the runs outside the newest keep that retention may empty. Runs of every state count among the newest.
func (d *DB) PrunableRuns(ctx context.Context, keep int) ([]api.RunID, error) {
	rows, err := d.r.QueryContext(ctx, `SELECT run_id FROM runs WHERE `+prunable+`
		AND seq NOT IN (SELECT seq FROM runs ORDER BY seq DESC LIMIT ?) ORDER BY seq`, keep)
	if err != nil {
		return nil, fmt.Errorf("list runs to prune: %w", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	ids := []api.RunID{}
	for rows.Next() {
		var id api.RunID
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// PruneRun removes what is heavy of a run and keeps its row with figures and scores. The leak guard keeps its items.
func (d *DB) PruneRun(ctx context.Context, id api.RunID) error {
	defer d.forgetTotals(id)
	return d.change(ctx, func(tx *sql.Tx) error {
		res, err := tx.ExecContext(ctx, `UPDATE runs SET pruned_at = ?, n_predictions = NULL WHERE run_id = ? AND `+prunable, d.seconds(), id)
		if err != nil {
			return fmt.Errorf("prune run %s: %w", id, err)
		}
		if n, err := res.RowsAffected(); err != nil || n == 0 {
			return errors.Join(err, api.Conflictf("run_live", "run %s has predictions that items show, or has not ended", id))
		}
		return deleteHeavy(ctx, tx, id)
	})
}

// DeleteRun removes a run that has ended, with everything of it, and takes down what items show of it.
func (d *DB) DeleteRun(ctx context.Context, id api.RunID) error {
	defer d.forgetTotals(id)
	err := d.change(ctx, func(tx *sql.Tx) error {
		var status api.RunStatus
		err := tx.QueryRowContext(ctx, `SELECT status FROM runs WHERE run_id = ?`, id).Scan(&status)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return notFound(id)
		case err != nil:
			return fmt.Errorf("read run %s: %w", id, err)
		case !status.Final():
			return api.Conflictf("run_not_over", "run %s is %s", id, status).WithHint("cancel it first")
		}
		if err := deleteHeavy(ctx, tx, id); err != nil {
			return err
		}
		if _, err := retract(ctx, tx, id); err != nil {
			return err
		}
		for _, table := range []string{"leases", "runs"} {
			if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE run_id = ?`, id); err != nil {
				return fmt.Errorf("delete run %s: %w", id, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return d.tidyPublications(ctx)
}

func deleteHeavy(ctx context.Context, tx *sql.Tx, id api.RunID) error {
	if err := deleteItems(ctx, tx, id); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM predictions WHERE run_id = ?`, id); err != nil {
		return fmt.Errorf("remove predictions of run %s: %w", id, err)
	}
	return nil
}
