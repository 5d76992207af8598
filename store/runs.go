package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"potato/api"
)

// Received says which of an agent's events are in the files of the run's folder: the next sequence number, and how long
// each file was when all before it had been written. What a file has beyond that was cut off in the middle. Own counts
// the events among them that the server added itself: an agent numbers its own without those.
type Received struct {
	NextSeq int64            `json:"next_seq"`
	Own     int64            `json:"own,omitempty"`
	Bytes   map[string]int64 `json:"bytes"`
}

// Run is a row of runs: what people read of it, and what a server must find again after a restart.
type Run struct {
	api.Run
	Seq          int64              // place in the queue
	WaitingSince *float64           // when it first had a place and no agent to take it
	Handle       *api.Handle        // of its worker
	Received     *Received          // how far its events and output have come
	Result       *api.Event         // the worker's result event
	Finish       *api.Finish        // the agent's last word
	Scores       []api.SchemaScores // nil until computed
	NPredictions *int64             // nil until they are stored
	Pruned       bool               // retention removed its files and predictions
	// SchedulerSince is since when its job waits in a cluster's own queue; nil: it does not.
	SchedulerSince *float64
	CopyError      string // what went wrong with the last copy of its files from the training machine
}

const runColumns = `seq, run_id, status, trainer, schema_names, kinds, backend, host, device, trigger, created_by,
	created_at, started_at, finished_at, n_train, n_val, n_test, n_unlabeled, split_seed, params, metrics,
	metrics_by_schema, error, error_code, hint, message, warnings, model_version, bundle_digest, artifact_uri, step,
	progress, attempt, writeback, environment, cancel_requested, waiting_since, handle, received,
	result, finish, scores, n_predictions,
	pruned_at IS NOT NULL, n_published, copy_error, scheduler_wait_s, scheduler_since`

func scanRun(row interface{ Scan(...any) error }) (Run, error) {
	var r Run
	err := row.Scan(&r.Seq, &r.RunID, &r.Status, &r.Trainer, asJSON{&r.SchemaNames}, asJSON{&r.Kinds}, &r.Backend,
		&r.Host, &r.Device, &r.Trigger, &r.CreatedBy, &r.CreatedAt, &r.StartedAt, &r.FinishedAt, &r.NTrain, &r.NVal,
		&r.NTest, &r.NUnlabeled, &r.SplitSeed, asJSON{&r.Params}, asJSON{&r.Metrics}, asJSON{&r.MetricsBySchema},
		&r.Error, &r.ErrorCode, &r.Hint, &r.Message, asJSON{&r.Warnings}, &r.ModelVersion, &r.BundleDigest,
		&r.ArtifactURI, &r.Step, asJSON{&r.Progress}, &r.Attempt, asJSON{&r.Writeback}, asJSON{&r.Environment},
		&r.CancelRequested, &r.WaitingSince, asJSON{&r.Handle}, asJSON{&r.Received}, asJSON{&r.Result},
		asJSON{&r.Finish}, asJSON{&r.Scores},
		&r.NPredictions, &r.Pruned, &r.NPublished, &r.CopyError, &r.SchedulerWaitS, &r.SchedulerSince)
	if err != nil {
		return Run{}, err
	}
	if r.StartedAt != nil && r.FinishedAt != nil {
		d := max(*r.FinishedAt-*r.StartedAt, 0) // the clock may have been set back
		r.Duration = &d
	}
	return r, nil
}

// CreateRun adds a run, queued behind all others. With retrain, automatic retraining remembers in the same transaction that
// it started this one. Conflict has code run_exists: take another id.
func (d *DB) CreateRun(ctx context.Context, r api.Run, retrain *Retrain) error {
	return d.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO runs (run_id, status, trainer, schema_names, kinds, backend, trigger,
			created_by, created_at, split_seed, params, message, warnings) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)`,
			r.RunID, api.RunQueued, r.Trainer, list(r.SchemaNames), list(r.Kinds), r.Backend, r.Trigger,
			r.CreatedBy, r.CreatedAt, r.SplitSeed, object(r.Params), r.Message, list(r.Warnings))
		if isUnique(err) {
			return api.Conflictf("run_exists", "there is a run %s already", r.RunID).WithCause(err)
		}
		if err != nil {
			return fmt.Errorf("create run: %w", err)
		}
		if retrain != nil {
			retrain.RunID = r.RunID
			return saveRetrain(ctx, tx, *retrain)
		}
		return nil
	})
}

// RunByID reads a run. NotFound has code run_not_found.
func (d *DB) RunByID(ctx context.Context, id api.RunID) (Run, error) {
	r, err := scanRun(d.r.QueryRowContext(ctx, `SELECT `+runColumns+` FROM runs WHERE run_id = ?`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return Run{}, notFound(id)
	}
	if err != nil {
		return Run{}, fmt.Errorf("read run %s: %w", id, err)
	}
	return r, nil
}

// RunsByStatus reads all runs in one of the states, in the order of the queue.
func (d *DB) RunsByStatus(ctx context.Context, status ...api.RunStatus) ([]Run, error) {
	where, args := inList("status", status)
	rows, err := d.r.QueryContext(ctx, `SELECT `+runColumns+` FROM runs WHERE `+where+` ORDER BY seq`, args...)
	if err != nil {
		return nil, fmt.Errorf("read runs: %w", err)
	}
	return readRuns(rows)
}

// LatestRun reads the run created last, or nil.
func (d *DB) LatestRun(ctx context.Context) (*Run, error) {
	r, err := scanRun(d.r.QueryRowContext(ctx, `SELECT `+runColumns+` FROM runs ORDER BY seq DESC LIMIT 1`))
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the latest run: %w", err)
	}
	return &r, nil
}

func readRuns(rows *sql.Rows) ([]Run, error) {
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	runs := []Run{}
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return nil, fmt.Errorf("read a run: %w", err)
		}
		runs = append(runs, r)
	}
	return runs, rows.Err()
}

func notFound(id api.RunID) *api.Error {
	return api.NotFoundf("run_not_found", "there is no run %s", id)
}
