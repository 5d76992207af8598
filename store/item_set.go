package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"slices"

	"potato/api"
)

// itemSet answers which of a run's items an id names. A million ids as strings would fill the memory; as hashes they
// take 16 bytes each. With a random seed two of a million ids meet once in 30 million runs, and then a wrong id passes
// as a known one.
type itemSet struct {
	seed    maphash.Seed
	items   []setItem
	targets map[targetKey]string // labels of held-out items; the texts are shared
	seen    map[string][]uint64  // scheme → a bit for each item
}

type setItem struct {
	hash  uint64
	n     int32
	split string // one of the constants, never a copy
}

type targetKey struct {
	item   int32
	schema string
}

func (d *DB) readItemSet(ctx context.Context, id api.RunID) (*itemSet, error) {
	s := &itemSet{seed: maphash.MakeSeed(), targets: map[targetKey]string{}, seen: map[string][]uint64{}}
	rows, err := d.r.QueryContext(ctx, `SELECT n, instance_id, split FROM run_items WHERE run_id = ?`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	shared := map[string]string{}
	for rows.Next() {
		var n int32
		var instance, split string
		if err := rows.Scan(&n, &instance, &split); err != nil {
			return nil, err
		}
		s.items = append(s.items, setItem{maphash.String(s.seed, instance), n, share(shared, split)})
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	slices.SortFunc(s.items, func(a, b setItem) int { return cmp.Compare(a.hash, b.hash) })
	return s, s.readTargets(ctx, d, id, shared)
}

func (s *itemSet) readTargets(ctx context.Context, d *DB, id api.RunID, shared map[string]string) error {
	rows, err := d.r.QueryContext(ctx, `SELECT item, schema_name, labels FROM run_targets WHERE run_id = ?`, id)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	for rows.Next() {
		var n int32
		var schema, labels string
		if err := rows.Scan(&n, &schema, &labels); err != nil {
			return err
		}
		s.targets[targetKey{n, share(shared, schema)}] = share(shared, labels)
	}
	return rows.Err()
}

// take finds the item that a prediction speaks of and marks it as predicted for that scheme.
func (s *itemSet) take(p api.Prediction) (setItem, error) {
	i, ok := slices.BinarySearchFunc(s.items, maphash.String(s.seed, p.InstanceID),
		func(a setItem, hash uint64) int { return cmp.Compare(a.hash, hash) })
	if !ok {
		return setItem{}, refused("unknown_item", "it predicts item %q, which is not in the run's bundle", p.InstanceID)
	}
	if s.items[i].split == api.SplitTrain {
		return setItem{}, refused("train_item", "it predicts item %q, which the run trained on", p.InstanceID)
	}
	bits := s.seen[p.SchemaName]
	if bits == nil {
		bits = make([]uint64, len(s.items)/64+1)
		s.seen[p.SchemaName] = bits
	}
	if bits[i/64]&(1<<(i%64)) != 0 {
		return setItem{}, refused("duplicate_prediction", "it predicts item %q twice for scheme %q", p.InstanceID, p.SchemaName)
	}
	bits[i/64] |= 1 << (i % 64)
	return s.items[i], nil
}

func share(have map[string]string, text string) string {
	if s, ok := have[text]; ok {
		return s
	}
	have[text] = text
	return text
}

func refused(code, format string, args ...any) *api.Error {
	return api.Invalidf(code, "the predictions were refused: "+format, args...).
		WithHint("mend the trainer; nothing of the file was stored")
}

// decodeLabels is the other way of encodeLabels.
func decodeLabels(text string) ([]string, error) {
	var labels []string
	if err := json.Unmarshal([]byte(text), &labels); err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	return labels, nil
}
