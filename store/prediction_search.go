package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"potato/api"
)

// maxSearches bounds how many results of searches are remembered. One of a million predictions takes 4 MB.
const maxSearches = 4

// search finds the predictions that match, by their place in the run's file. A search looks at every text of the run, which
// of a million takes about a second, and is asked for page by page: once they can no longer change, its result is
// remembered.
func (d *DB) search(ctx context.Context, id api.RunID, f PredictionFilter) ([]int32, error) {
	f.Cursor, f.Limit = "", 0
	_, fixed, err := d.storedPredictions(ctx, id)
	if err != nil {
		return nil, err
	}
	key := totalKey{id, f}
	d.totalsMu.Lock()
	found, ok := d.searches[key]
	d.totalsMu.Unlock()
	if ok {
		return found, nil
	}
	// As one text: to take a million rows from the driver one by one is slower than the search.
	where, args := f.where(id)
	var text sql.RawBytes
	rows, err := d.r.QueryContext(ctx, `SELECT json_group_array(p.n) FROM predictions p WHERE `+where, args...)
	if err != nil {
		return nil, fmt.Errorf("search the predictions of run %s: %w", id, err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	for rows.Next() {
		if err := rows.Scan(&text); err != nil {
			return nil, fmt.Errorf("search the predictions of run %s: %w", id, err)
		}
		if err := json.Unmarshal(text, &found); err != nil {
			return nil, fmt.Errorf("search the predictions of run %s: %w", id, err)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("search the predictions of run %s: %w", id, err)
	}
	slices.Sort(found)
	if !fixed {
		return found, nil
	}
	d.totalsMu.Lock()
	defer d.totalsMu.Unlock()
	if len(d.searches) >= maxSearches {
		clear(d.searches)
	}
	d.searches[key] = found
	return found, nil
}

// searchPage reads a page of what a search found.
func (d *DB) searchPage(ctx context.Context, id api.RunID, f PredictionFilter, after int64, limit int) (page api.PredictionList, err error) {
	found, err := d.search(ctx, id, f)
	if err != nil {
		return page, err
	}
	page.Total = len(found)
	first, _ := slices.BinarySearchFunc(found, after+1, func(n int32, want int64) int { return int(int64(n) - want) })
	found = found[first:]
	more := len(found) > limit
	found = found[:min(limit, len(found))]
	page.Predictions = make([]api.PredictionRow, 0, len(found))
	if len(found) == 0 {
		return page, nil
	}
	if more {
		page.Next = fmt.Sprint(found[len(found)-1])
	}
	where, args := inList("p.n", found)
	err = d.readPredictions(ctx, id, `p.run_id = ? AND `+where+` ORDER BY p.n`, append([]any{string(id)}, args...), func(_ int64, row api.PredictionRow) error {
		page.Predictions = append(page.Predictions, row)
		return nil
	})
	return page, err
}
