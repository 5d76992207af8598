package store

import (
	"context"
	"fmt"

	"potato/api"
)

// CountRuns counts the runs in each state; states without runs are absent.
func (d *DB) CountRuns(ctx context.Context) (counts map[api.RunStatus]int, err error) {
	rows, err := d.r.QueryContext(ctx, `SELECT status, count(*) FROM runs GROUP BY status`)
	if err != nil {
		return nil, fmt.Errorf("count runs: %w", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	counts = map[api.RunStatus]int{}
	for rows.Next() {
		var status api.RunStatus
		var n int
		if err := rows.Scan(&status, &n); err != nil {
			return nil, fmt.Errorf("count runs: %w", err)
		}
		counts[status] = n
	}
	return counts, rows.Err()
}
