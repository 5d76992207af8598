package store

import (
	"context"
	"database/sql"
	"fmt"

	"potato/api"
)

// Candidate is a prediction that might be shown to annotators.
type Candidate struct {
	InstanceID string
	SchemaName string
	Labels     []string
	Payload    api.Payload
	Confidence *float64
	Trained    bool // some run has trained on the item: the leak guard
}

// Candidates hands over a run's predictions as write-back looks at them.
func (d *DB) Candidates(ctx context.Context, id api.RunID, emit func(Candidate) error) error {
	return d.eachCandidate(ctx, id, func(c Candidate, _ string) error { return emit(c) })
}

// SaveWriteback keeps the counts of a write-back with its run.
func (d *DB) SaveWriteback(ctx context.Context, id api.RunID, w api.Writeback) error {
	return d.change(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE runs SET writeback = ? WHERE run_id = ?`, asJSON{w}, id)
		return err
	})
}

// eachCandidate reads through a reader's connection: what a run predicted does not change any more.
func (d *DB) eachCandidate(ctx context.Context, id api.RunID, emit func(c Candidate, payload string) error) error {
	rows, err := d.r.QueryContext(ctx, `SELECT i.instance_id, p.schema_name, p.labels, p.payload, p.confidence,
		EXISTS (SELECT 1 FROM trained_items t WHERE t.instance_id = i.instance_id)
		FROM predictions p JOIN run_items i ON i.run_id = p.run_id AND i.n = p.item
		WHERE p.run_id = ? ORDER BY p.n`, id)
	if err != nil {
		return fmt.Errorf("read predictions of run %s: %w", id, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	payloads := api.NewPayloadReader()
	for rows.Next() {
		var c Candidate
		var labels, payload string
		if err := rows.Scan(&c.InstanceID, &c.SchemaName, &labels, &payload, &c.Confidence, &c.Trained); err != nil {
			return fmt.Errorf("read a prediction of run %s: %w", id, err)
		}
		if c.Labels, err = decodeLabels(labels); err != nil {
			return err
		}
		if c.Payload, err = payloads.Read([]byte(payload)); err != nil {
			return fmt.Errorf("read a prediction of run %s: %w", id, err)
		}
		if err := emit(c, payload); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Published is the prediction that an item shows for a scheme.
type Published struct {
	RunID      api.RunID
	Payload    api.Payload
	Confidence *float64
}

// PublishedOf reads what an item shows, by scheme.
func (d *DB) PublishedOf(ctx context.Context, instanceID string) (map[string]Published, error) {
	rows, err := d.r.QueryContext(ctx, `SELECT s.schema_name, p.run_id, w.payload, w.confidence FROM shown s
		JOIN publications p ON p.publication = s.publication
		JOIN published w ON w.publication = s.publication AND w.instance_id = ?`, instanceID)
	if err != nil {
		return nil, fmt.Errorf("read what item %s shows: %w", instanceID, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	shown, payloads := map[string]Published{}, api.NewPayloadReader()
	for rows.Next() {
		var schema, payload string
		var p Published
		if err := rows.Scan(&schema, &p.RunID, &payload, &p.Confidence); err != nil {
			return nil, fmt.Errorf("read what item %s shows: %w", instanceID, err)
		}
		if p.Payload, err = payloads.Read([]byte(payload)); err != nil {
			return nil, fmt.Errorf("read what item %s shows: %w", instanceID, err)
		}
		shown[schema] = p
	}
	return shown, rows.Err()
}

// CountPublished says how many items show each run's predictions.
func (d *DB) CountPublished(ctx context.Context) (map[api.RunID]int, error) {
	rows, err := d.r.QueryContext(ctx, `SELECT p.run_id, sum(s.n) FROM shown s JOIN publications p USING (publication) GROUP BY p.run_id`)
	if err != nil {
		return nil, fmt.Errorf("count published predictions: %w", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	counts := map[api.RunID]int{}
	for rows.Next() {
		var id api.RunID
		var n int
		if err := rows.Scan(&id, &n); err != nil {
			return nil, err
		}
		counts[id] = n
	}
	return counts, rows.Err()
}
