package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"

	"potato/api"
)

// PredictionCheck says what is wrong with a prediction by itself, and which labels it predicts.
type PredictionCheck func(p api.Prediction) (labels []string, err error)

// StorePredictions keeps the predictions of a run that is running, all of them or none, replacing what it had. Each row
// has to pass check, and its item has to be one of the run's, not a training item, and predicted once for a scheme.
// It returns how many there were.
func (d *DB) StorePredictions(ctx context.Context, id api.RunID, rows iter.Seq2[api.Prediction, error], check PredictionCheck) (int64, error) {
	set, err := d.readItemSet(ctx, id)
	if err != nil {
		return 0, fmt.Errorf("read the items of run %s: %w", id, err)
	}
	in := &ingest{id: string(id), set: set, check: check, single: map[string]string{}}
	err = d.change(ctx, func(tx *sql.Tx) error {
		if err := mayStore(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM predictions WHERE run_id = ?`, id); err != nil {
			return fmt.Errorf("remove predictions: %w", err)
		}
		if err := in.run(ctx, tx, rows); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE runs SET n_predictions = ? WHERE run_id = ?`, in.n, id)
		return err
	})
	d.forgetTotals(id)
	if err != nil {
		return 0, err
	}
	return in.n, nil
}

// mayStore refuses predictions of a run that is over, so that a late upload changes nothing.
func mayStore(ctx context.Context, tx *sql.Tx, id api.RunID) error {
	var status api.RunStatus
	var stopping bool
	err := tx.QueryRowContext(ctx, `SELECT status, cancel_requested OR error_code <> '' FROM runs WHERE run_id = ?`, id).
		Scan(&status, &stopping)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return notFound(id)
	case err != nil:
		return fmt.Errorf("read run %s: %w", id, err)
	case status != api.RunRunning:
		return api.Gonef("run_over", "run %s is %s and takes no predictions", id, status)
	case stopping:
		return api.Conflictf("run_stopping", "run %s is being stopped and takes no predictions", id)
	}
	return nil
}

const predictionColumns = 8 // beside the run

// ingest turns predictions into rows in one goroutine and inserts them in another: each costs about the same.
type ingest struct {
	id    string
	set   *itemSet
	check PredictionCheck
	n     int64

	payload []byte            // reused
	single  map[string]string // a label → its list of one, which comes over and over
}

func (in *ingest) encoded(labels []string) string {
	if len(labels) != 1 {
		return encodeLabels(labels)
	}
	text, ok := in.single[labels[0]]
	if !ok {
		text = encodeLabels(labels)
		in.single[labels[0]] = text
	}
	return text
}

type batch struct {
	args []any
	err  error
}

func (in *ingest) run(ctx context.Context, tx *sql.Tx, rows iter.Seq2[api.Prediction, error]) error {
	ctx, stop := context.WithCancel(ctx)
	b := newBulk(ctx, tx, "INSERT INTO predictions (run_id, n, item, schema_name, split, labels, confidence, correct, payload) VALUES ",
		predictionColumns, in.id)
	full, empty := make(chan batch, 4), make(chan []any, 5)
	for range cap(empty) {
		empty <- append(make([]any, 0, b.size()), in.id)
	}
	go func() {
		defer close(full)
		if err := in.fill(ctx, rows, b.size(), full, empty); err != nil {
			full <- batch{err: err}
		}
	}()
	defer func() {
		stop()
		for range full { // until the goroutine has ended
		}
	}()
	for got := range full {
		if got.err != nil {
			return errors.Join(got.err, b.flush())
		}
		insert := b.full
		if len(got.args) < b.size() {
			insert = func(args []any) error { return b.add(args[b.same:]...) }
		}
		if err := insert(got.args); err != nil {
			return fmt.Errorf("insert predictions: %w", err)
		}
		empty <- got.args[:b.same]
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return b.flush()
}

// fill sends batches of up to a hundred rows until the rows end, one is refused or ctx ends.
func (in *ingest) fill(ctx context.Context, rows iter.Seq2[api.Prediction, error], size int, full chan<- batch, empty <-chan []any) error {
	args := <-empty
	for p, err := range rows {
		if err != nil {
			return err
		}
		if args, err = in.row(args, p); err != nil {
			return err
		}
		if len(args) < size {
			continue
		}
		full <- batch{args: args} // whoever reads goes on until this goroutine ends
		select {
		case args = <-empty:
		case <-ctx.Done():
			return nil
		}
	}
	if len(args) > 1 { // more than the run
		full <- batch{args: args}
	}
	return nil
}

// row checks a prediction and appends its columns.
func (in *ingest) row(args []any, p api.Prediction) ([]any, error) {
	in.n++
	labels, err := in.check(p)
	if err != nil {
		return nil, atLine(in.n, err)
	}
	item, err := in.set.take(p)
	if err != nil {
		return nil, atLine(in.n, err)
	}
	text := in.encoded(labels)
	if in.payload, err = p.Payload.AppendJSON(in.payload[:0]); err != nil {
		return nil, err
	}
	var correct any
	if target, ok := in.set.targets[targetKey{item.n, p.SchemaName}]; ok {
		correct = target == text
	}
	return append(args, in.n, item.n, p.SchemaName, in.set.split(item), text, p.Confidence, correct, string(in.payload)), nil
}

// atLine says in which line of the file the refused prediction stands.
func atLine(n int64, err error) error {
	var e *api.Error
	if !errors.As(err, &e) {
		return fmt.Errorf("prediction %d: %w", n, err)
	}
	return api.Invalidf(e.Code, "line %d: %s", n, e.Message).WithHint("%s", e.Hint).WithCause(e)
}
