package store

import (
	"context"
	"database/sql"
	"fmt"
	"iter"
	"slices"

	"potato/api"
	"potato/api/pyjson"
)

const (
	// TextLimit are the runes of an item's text that a page shows and a search looks at; what is cut ends in an ellipsis.
	TextLimit = 500
	chunkRows = 20000 // rows between which other writers get their turn
)

// StoreRunItems replaces the items of a run that is being built. It is not one transaction: other writers come between,
// and whoever finds the run still building after a restart builds it anew.
func (d *DB) StoreRunItems(ctx context.Context, id api.RunID, items iter.Seq2[api.BundleItem, error]) error {
	err := d.change(ctx, func(tx *sql.Tx) error { return deleteItems(ctx, tx, id) })
	if err != nil {
		return err
	}
	next, stop := iter.Pull2(items)
	defer stop()
	n, more := 0, true
	for more {
		err = d.change(ctx, func(tx *sql.Tx) error {
			c := newItemChunk(ctx, tx, id)
			for range chunkRows {
				var item api.BundleItem
				var err error
				if item, err, more = next(); !more {
					break
				}
				if err != nil {
					return err
				}
				if err := c.add(n, item); err != nil {
					return err
				}
				n++
			}
			return c.flush()
		})
		if err != nil {
			return fmt.Errorf("store the items of run %s: %w", id, err)
		}
	}
	return nil
}

// itemChunk collects the rows of one transaction for the three tables.
type itemChunk struct {
	items, targets, trained *bulk
}

func newItemChunk(ctx context.Context, tx *sql.Tx, id api.RunID) *itemChunk {
	return &itemChunk{
		items:   newBulk(ctx, tx, "INSERT INTO run_items (run_id, n, instance_id, split, text) VALUES ", 4, string(id)),
		targets: newBulk(ctx, tx, "INSERT INTO run_targets (run_id, item, schema_name, labels) VALUES ", 3, string(id)),
		trained: newBulk(ctx, tx, "INSERT OR IGNORE INTO trained_items (instance_id) VALUES ", 1),
	}
}

func (c *itemChunk) add(n int, item api.BundleItem) error {
	if item.Split == api.SplitTrain {
		if err := c.trained.add(item.InstanceID); err != nil {
			return err
		}
		return c.items.add(n, item.InstanceID, item.Split, nil)
	}
	for schema, labels := range item.Targets {
		if err := c.targets.add(n, schema, encodeLabels(labels)); err != nil {
			return err
		}
	}
	return c.items.add(n, item.InstanceID, item.Split, cut(item.Text, TextLimit))
}

func (c *itemChunk) flush() error {
	for _, b := range []*bulk{c.items, c.targets, c.trained} {
		if err := b.flush(); err != nil {
			return err
		}
	}
	return nil
}

func deleteItems(ctx context.Context, tx *sql.Tx, id api.RunID) error {
	for _, table := range []string{"run_items", "run_targets"} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM `+table+` WHERE run_id = ?`, id); err != nil {
			return fmt.Errorf("remove %s of run %s: %w", table, id, err)
		}
	}
	return nil
}

// encodeLabels is the one form in which labels are stored and compared: a sorted JSON list.
func encodeLabels(labels []string) string {
	if !slices.IsSorted(labels) {
		labels = slices.Sorted(slices.Values(labels))
	}
	return string(api.AppendStrings(nil, labels))
}

// cut shortens a text to n characters, marked. Half a surrogate pair is a character as well.
func cut(s string, n int) string {
	end := 0
	for range n {
		_, size := pyjson.DecodeRune(s[end:])
		if end += size; end == len(s) {
			return s
		}
	}
	return s[:end] + "…"
}
