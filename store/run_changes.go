package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"potato/api"
)

// RunUpdate changes columns of a run; nil leaves one alone.
type RunUpdate struct {
	Host, Device, Step, Message     *string
	Error, ErrorCode, Hint          *string
	ModelVersion, BundleDigest      *string
	ArtifactURI, CopyError          *string
	StartedAt, FinishedAt           *float64
	WaitingSince                    *float64
	Scheduler                       *SchedulerWait
	NTrain, NVal, NTest, NUnlabeled *int
	Attempt                         *int
	CancelRequested                 *bool
	Progress                        *api.Progress
	NoProgress                      bool // the phase is over
	Handle                          *api.Handle
	Received                        *Received
	Result                          *api.Event
	Finish                          *api.Finish
	Metrics                         api.Metrics
	MetricsBySchema                 map[string]api.Metrics
	Scores                          []api.SchemaScores
	Environment                     map[string]string
	Warn                            []string // added to the warnings that are there, each once
}

// SchedulerWait is how long a run's jobs have waited in their cluster's queue, and since when one does now.
type SchedulerWait struct {
	Seconds float64
	Since   *float64
}

// UpdateRun changes a run without touching its state.
func (d *DB) UpdateRun(ctx context.Context, id api.RunID, up RunUpdate) error {
	return d.change(ctx, func(tx *sql.Tx) error { return updateRun(ctx, tx, id, up) })
}

// MoveRun takes a run from one state to another, with the update in the same transaction. A run that is not in the
// first state is a Conflict with code run_moved: someone was faster.
func (d *DB) MoveRun(ctx context.Context, id api.RunID, from, to api.RunStatus, up RunUpdate) error {
	return d.change(ctx, func(tx *sql.Tx) error {
		if err := moveRun(ctx, tx, id, from, to); err != nil {
			return err
		}
		return updateRun(ctx, tx, id, up)
	})
}

func moveRun(ctx context.Context, tx *sql.Tx, id api.RunID, from, to api.RunStatus) error {
	res, err := tx.ExecContext(ctx, `UPDATE runs SET status = ? WHERE run_id = ? AND status = ?`, to, id, from)
	if err != nil {
		return fmt.Errorf("move run %s to %s: %w", id, to, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, moved(ctx, tx, id, from))
	}
	return nil
}

// RequestCancel sets the cancel flag of a run whose predictions are not stored yet, and says in which state it was.
// Conflict has code too_late, or run_over for a run that has ended.
func (d *DB) RequestCancel(ctx context.Context, id api.RunID) (api.RunStatus, error) {
	yes := true
	return d.stopRun(ctx, id, RunUpdate{CancelRequested: &yes})
}

// CondemnRun decides how a run ends before its work does: the error stays whatever the worker says afterwards, and after
// a restart. It refuses what RequestCancel refuses, and leaves a run alone that is being stopped already.
func (d *DB) CondemnRun(ctx context.Context, id api.RunID, e *api.Error) error {
	_, err := d.stopRun(ctx, id, RunUpdate{Error: &e.Message, ErrorCode: &e.Code, Hint: &e.Hint})
	return err
}

func (d *DB) stopRun(ctx context.Context, id api.RunID, up RunUpdate) (api.RunStatus, error) {
	var was api.RunStatus
	err := d.change(ctx, func(tx *sql.Tx) error {
		var stored sql.NullInt64
		var stopping bool
		err := tx.QueryRowContext(ctx, `SELECT status, n_predictions, cancel_requested OR error_code <> '' FROM runs WHERE run_id = ?`, id).
			Scan(&was, &stored, &stopping)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return notFound(id)
		case err != nil:
			return fmt.Errorf("read run %s: %w", id, err)
		case was.Final():
			return api.Conflictf("run_over", "run %s has ended already (%s)", id, was)
		case was == api.RunEvaluating || stored.Valid:
			return api.Conflictf("too_late", "run %s has finished training and its predictions are stored", id).
				WithHint("retract its predictions instead")
		case stopping:
			return nil
		}
		return updateRun(ctx, tx, id, up)
	})
	return was, err
}

func moved(ctx context.Context, tx *sql.Tx, id api.RunID, from api.RunStatus) error {
	var is api.RunStatus
	err := tx.QueryRowContext(ctx, `SELECT status FROM runs WHERE run_id = ?`, id).Scan(&is)
	if errors.Is(err, sql.ErrNoRows) {
		return notFound(id)
	}
	if err != nil {
		return fmt.Errorf("read run %s: %w", id, err)
	}
	return api.Conflictf("run_moved", "run %s is %s, no longer %s", id, is, from)
}

func updateRun(ctx context.Context, tx *sql.Tx, id api.RunID, up RunUpdate) error {
	if len(up.Warn) > 0 {
		if err := addWarnings(ctx, tx, id, up.Warn); err != nil {
			return err
		}
	}
	set, args := up.columns()
	if len(set) == 0 {
		return nil
	}
	res, err := tx.ExecContext(ctx, `UPDATE runs SET `+strings.Join(set, ", ")+` WHERE run_id = ?`, append(args, id)...)
	if err != nil {
		return fmt.Errorf("update run %s: %w", id, err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, notFound(id))
	}
	return nil
}

func (up RunUpdate) columns() (set []string, args []any) {
	add := func(column string, given bool, v any) {
		if given {
			set, args = append(set, column+" = ?"), append(args, v)
		}
	}
	for column, v := range map[string]*string{
		"host": up.Host, "device": up.Device, "step": up.Step, "message": up.Message, "error": up.Error,
		"error_code": up.ErrorCode, "hint": up.Hint, "model_version": up.ModelVersion, "bundle_digest": up.BundleDigest,
		"artifact_uri": up.ArtifactURI, "copy_error": up.CopyError,
	} {
		add(column, v != nil, v)
	}
	for column, v := range map[string]*int{
		"n_train": up.NTrain, "n_val": up.NVal, "n_test": up.NTest, "n_unlabeled": up.NUnlabeled, "attempt": up.Attempt,
	} {
		add(column, v != nil, v)
	}
	add("started_at", up.StartedAt != nil, up.StartedAt)
	add("finished_at", up.FinishedAt != nil, up.FinishedAt)
	if w := up.Scheduler; w != nil {
		add("scheduler_wait_s", true, w.Seconds)
		add("scheduler_since", true, w.Since)
	}
	add("waiting_since", up.WaitingSince != nil, up.WaitingSince)
	add("cancel_requested", up.CancelRequested != nil, up.CancelRequested)
	add("progress", up.Progress != nil || up.NoProgress, asJSON{up.Progress})
	add("handle", up.Handle != nil, asJSON{up.Handle})
	add("received", up.Received != nil, asJSON{up.Received})
	add("result", up.Result != nil, asJSON{up.Result})
	add("finish", up.Finish != nil, asJSON{up.Finish})
	add("metrics", up.Metrics != nil, asJSON{up.Metrics})
	add("metrics_by_schema", up.MetricsBySchema != nil, asJSON{up.MetricsBySchema})
	add("scores", up.Scores != nil, asJSON{up.Scores})
	add("environment", up.Environment != nil, asJSON{up.Environment})
	return set, args
}

func addWarnings(ctx context.Context, tx *sql.Tx, id api.RunID, more []string) error {
	var have []string
	err := tx.QueryRowContext(ctx, `SELECT warnings FROM runs WHERE run_id = ?`, id).Scan(asJSON{&have})
	if errors.Is(err, sql.ErrNoRows) {
		return notFound(id)
	}
	if err != nil {
		return fmt.Errorf("read the warnings of run %s: %w", id, err)
	}
	seen := map[string]bool{}
	for _, w := range have {
		seen[w] = true
	}
	for _, w := range more {
		if !seen[w] {
			have, seen[w] = append(have, w), true
		}
	}
	if _, err := tx.ExecContext(ctx, `UPDATE runs SET warnings = ? WHERE run_id = ?`, list(have), id); err != nil {
		return fmt.Errorf("add a warning to run %s: %w", id, err)
	}
	return nil
}
