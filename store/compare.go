package store

import (
	"context"
	"fmt"

	"potato/api"
)

// Comparison is how two runs do on the same held-out items, judged by the first one's targets.
type Comparison struct {
	N             int // items that both have held out and predicted
	First, Second int // how many of them each predicts right
}

// CompareRuns compares two runs' predictions for a scheme. The targets are those of the first: labels change.
func (d *DB) CompareRuns(ctx context.Context, first, second api.RunID, schema string) (Comparison, error) {
	var c Comparison
	// The other run's items are looked up by a table made for this query: run_items has no index by id.
	err := d.r.QueryRowContext(ctx, `
		WITH other AS MATERIALIZED (
			SELECT i.instance_id, p.labels FROM predictions p
			JOIN run_items i ON i.run_id = p.run_id AND i.n = p.item
			WHERE p.run_id = ? AND p.schema_name = ? AND p.split IN (?, ?))
		SELECT count(*), coalesce(sum(p.labels = t.labels), 0), coalesce(sum(other.labels = t.labels), 0)
		FROM predictions p
		JOIN run_items i ON i.run_id = p.run_id AND i.n = p.item
		JOIN run_targets t ON t.run_id = p.run_id AND t.item = p.item AND t.schema_name = p.schema_name
		JOIN other ON other.instance_id = i.instance_id
		WHERE p.run_id = ? AND p.schema_name = ?`,
		second, schema, api.SplitVal, api.SplitTest, first, schema).Scan(&c.N, &c.First, &c.Second)
	if err != nil {
		return c, fmt.Errorf("compare runs %s and %s: %w", first, second, err)
	}
	return c, nil
}

// PublishedRun is the run whose predictions items show for a scheme; empty when none does.
func (d *DB) PublishedRun(ctx context.Context, schema string) (api.RunID, error) {
	var id api.RunID
	err := d.r.QueryRowContext(ctx, `SELECT coalesce((SELECT run_id FROM shown JOIN publications USING (publication, schema_name) WHERE schema_name = ?), '')`, schema).Scan(&id)
	if err != nil {
		return "", fmt.Errorf("read what is published: %w", err)
	}
	return id, nil
}
