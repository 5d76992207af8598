package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"potato/api"
)

// PredictionFilter selects predictions of a run. The zero value is the first page of all.
type PredictionFilter struct {
	Schema string
	Split  string
	Label  string
	Target string // one of the held-out item's own labels
	Wrong  bool   // only held-out items whose prediction is not the target
	Q      string // part of the item's id or text
	Cursor string
	Limit  int // absent: 50; at most 1000
}

const predictionSelect = `SELECT p.n, i.instance_id, p.schema_name, p.split, p.payload, p.confidence, p.correct, t.labels,
	coalesce(i.text, '')
	FROM predictions p
	JOIN run_items i ON i.run_id = p.run_id AND i.n = p.item
	LEFT JOIN run_targets t ON t.run_id = p.run_id AND t.item = p.item AND t.schema_name = p.schema_name`

// PredictionsPage reads a page of a run's predictions in the order of its file: held-out items first.
func (d *DB) PredictionsPage(ctx context.Context, id api.RunID, f PredictionFilter) (api.PredictionList, error) {
	limit := f.Limit
	if limit <= 0 {
		limit = 50
	}
	limit = min(limit, 1000)
	after, err := predictionCursor(f.Cursor)
	if err != nil {
		return api.PredictionList{}, err
	}
	if f.Q != "" {
		return d.searchPage(ctx, id, f, after, limit)
	}
	page := api.PredictionList{Predictions: []api.PredictionRow{}}
	last := int64(0)
	err = d.eachPrediction(ctx, id, f, after, limit+1, func(n int64, row api.PredictionRow) error {
		if len(page.Predictions) == limit {
			page.Next = strconv.FormatInt(last, 10)
			return nil
		}
		page.Predictions, last = append(page.Predictions, row), n
		return nil
	})
	if err != nil {
		return api.PredictionList{}, err
	}
	page.Total, err = d.predictionTotal(ctx, id, f)
	return page, err
}

// StreamPredictions hands over every prediction that matches, in the order of the page.
func (d *DB) StreamPredictions(ctx context.Context, id api.RunID, f PredictionFilter, emit func(api.PredictionRow) error) error {
	return d.eachPrediction(ctx, id, f, 0, -1, func(_ int64, row api.PredictionRow) error { return emit(row) })
}

func (d *DB) eachPrediction(ctx context.Context, id api.RunID, f PredictionFilter, after int64, limit int, emit func(int64, api.PredictionRow) error) error {
	where, args := f.where(id)
	return d.readPredictions(ctx, id, where+` AND p.n > ? ORDER BY p.n LIMIT ?`, append(args, after, limit), emit)
}

func (d *DB) readPredictions(ctx context.Context, id api.RunID, where string, args []any, emit func(int64, api.PredictionRow) error) error {
	rows, err := d.r.QueryContext(ctx, predictionSelect+` WHERE `+where, args...)
	if err != nil {
		return fmt.Errorf("read predictions of run %s: %w", id, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	payloads := api.NewPayloadReader()
	for rows.Next() {
		n, row, err := scanPrediction(rows, payloads)
		if err != nil {
			return fmt.Errorf("read a prediction of run %s: %w", id, err)
		}
		if err := emit(n, row); err != nil {
			return err
		}
	}
	return rows.Err()
}

func scanPrediction(rows *sql.Rows, payloads *api.PayloadReader) (int64, api.PredictionRow, error) {
	var n int64
	var payload []byte
	var target sql.NullString
	row := api.PredictionRow{Target: []string{}}
	err := rows.Scan(&n, &row.InstanceID, &row.SchemaName, &row.Split, &payload, &row.Confidence, &row.Correct, &target,
		&row.Text)
	if err != nil {
		return 0, row, err
	}
	if target.Valid {
		if row.Target, err = decodeLabels(target.String); err != nil {
			return 0, row, err
		}
	}
	row.Payload, err = payloads.Read(payload)
	return n, row, err
}

func (f PredictionFilter) where(id api.RunID) (string, []any) {
	where, args := []string{"p.run_id = ?"}, []any{string(id)}
	if f.Schema != "" {
		where, args = append(where, "p.schema_name = ?"), append(args, f.Schema)
	}
	if f.Split != "" {
		where, args = append(where, "p.split = ?"), append(args, f.Split)
	}
	if f.Label != "" {
		where = append(where, "EXISTS (SELECT 1 FROM json_each(p.labels) WHERE value = ?)")
		args = append(args, f.Label)
	}
	if f.Target != "" {
		where = append(where, `EXISTS (SELECT 1 FROM run_targets w, json_each(w.labels) l
			WHERE w.run_id = p.run_id AND w.item = p.item AND w.schema_name = p.schema_name AND l.value = ?)`)
		args = append(args, f.Target)
	}
	if f.Wrong {
		where = append(where, "p.correct = 0")
	}
	if f.Q != "" {
		// The items are searched once, in their own order: to look each prediction's item up takes ten times as long.
		where = append(where, `p.item IN (SELECT n FROM run_items WHERE run_id = ? AND (instance_id LIKE ? ESCAPE '\' OR text LIKE ? ESCAPE '\'))`)
		args = append(args, string(id), contains(f.Q), contains(f.Q))
	}
	return strings.Join(where, " AND "), args
}

func predictionCursor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, badCursor(err)
	}
	return n, nil
}

type totalKey struct {
	id     api.RunID
	filter PredictionFilter
}

// totalsLimit bounds how many counts are remembered; over it all are forgotten.
const totalsLimit = 200

// predictionTotal counts the predictions that match. To count a million takes a second, so the figure is remembered once
// they can no longer change.
func (d *DB) predictionTotal(ctx context.Context, id api.RunID, f PredictionFilter) (int, error) {
	f.Cursor, f.Limit = "", 0
	stored, fixed, err := d.storedPredictions(ctx, id)
	if err != nil || f == (PredictionFilter{}) {
		return stored, err
	}
	key := totalKey{id, f}
	d.totalsMu.Lock()
	n, ok := d.totals[key]
	d.totalsMu.Unlock()
	if ok {
		return n, nil
	}
	where, args := f.where(id)
	if err := d.r.QueryRowContext(ctx, `SELECT count(*) FROM predictions p WHERE `+where, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count predictions of run %s: %w", id, err)
	}
	if !fixed {
		return n, nil
	}
	d.totalsMu.Lock()
	defer d.totalsMu.Unlock()
	if len(d.totals) >= totalsLimit {
		clear(d.totals)
	}
	d.totals[key] = n
	return n, nil
}

// storedPredictions says how many predictions a run has, and whether that is so for good.
func (d *DB) storedPredictions(ctx context.Context, id api.RunID) (n int, fixed bool, err error) {
	err = d.r.QueryRowContext(ctx, `SELECT coalesce(n_predictions, 0), status NOT IN (?, ?, ?) FROM runs WHERE run_id = ?`,
		api.RunQueued, api.RunBuilding, api.RunRunning, id).Scan(&n, &fixed)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, false, notFound(id)
	}
	if err != nil {
		return 0, false, fmt.Errorf("read run %s: %w", id, err)
	}
	return n, fixed, nil
}

func (d *DB) forgetTotals(id api.RunID) {
	d.totalsMu.Lock()
	defer d.totalsMu.Unlock()
	ofRun := func(k totalKey) bool { return k.id == id }
	maps.DeleteFunc(d.totals, func(k totalKey, _ int) bool { return ofRun(k) })
	maps.DeleteFunc(d.searches, func(k totalKey, _ []int32) bool { return ofRun(k) })
}
