package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"hash/maphash"
	"slices"

	"potato/api"
	"potato/api/pyjson"
)

// itemSet answers which of a run's items an id names. A million ids as strings would fill the memory; as hashes they
// take 16 bytes each. With a random seed two of a million ids meet once in 30 million runs, and then a wrong id passes
// as a known one.
type itemSet struct {
	seed      maphash.Seed
	items     []setItem // in the order of the bundle
	byHash    []int32   // places in items; made when ids come in another order than the bundle's
	splits    []string
	predicted int                  // where the items that get predictions begin: behind those that the run trained on
	targets   map[targetKey]string // labels of held-out items; the texts are shared
	seen      map[string]*seenItems
}

type setItem struct {
	hash uint64
	n    int32
	of   uint8 // its place in splits
}

// seenItems are the items that have a prediction for one scheme.
type seenItems struct {
	bits []uint64 // one for each item
	next int      // the item behind the one predicted last: the one to expect
}

type targetKey struct {
	item   int32
	schema string
}

func (d *DB) readItemSet(ctx context.Context, id api.RunID) (*itemSet, error) {
	s := &itemSet{seed: maphash.MakeSeed(), targets: map[targetKey]string{}, seen: map[string]*seenItems{}}
	rows, err := d.r.QueryContext(ctx, `SELECT n, instance_id, split FROM run_items WHERE run_id = ? ORDER BY n`, id)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err says what went wrong
	for rows.Next() {
		var n int32
		var instance, split sql.RawBytes
		if err := rows.Scan(&n, &instance, &split); err != nil {
			return nil, err
		}
		s.items = append(s.items, setItem{maphash.Bytes(s.seed, instance), n, s.splitPlace(string(split))})
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	isPredicted := func(i setItem) bool { return s.split(i) != api.SplitTrain }
	s.predicted = max(slices.IndexFunc(s.items, isPredicted), 0)
	return s, s.readTargets(ctx, d, id, map[string]string{})
}

func (s *itemSet) split(i setItem) string { return s.splits[i.of] }

func (s *itemSet) splitPlace(name string) uint8 {
	i := slices.Index(s.splits, name)
	if i < 0 {
		i = len(s.splits)
		s.splits = append(s.splits, name)
	}
	return uint8(i) //nolint:gosec // train, val, test and unlabeled
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
	seen := s.seen[p.SchemaName]
	if seen == nil {
		seen = &seenItems{bits: make([]uint64, len(s.items)/64+1), next: s.predicted}
		s.seen[p.SchemaName] = seen
	}
	i := s.find(maphash.String(s.seed, p.InstanceID), seen.next)
	if i < 0 {
		return setItem{}, refused("unknown_item", "it predicts item %q, which is not in the run's bundle", p.InstanceID)
	}
	if s.split(s.items[i]) == api.SplitTrain {
		return setItem{}, refused("train_item", "it predicts item %q, which the run trained on", p.InstanceID)
	}
	if seen.bits[i/64]&(1<<(i%64)) != 0 {
		return setItem{}, refused("duplicate_prediction", "it predicts item %q twice for scheme %q", p.InstanceID, p.SchemaName)
	}
	seen.bits[i/64] |= 1 << (i % 64)
	seen.next = i + 1
	return s.items[i], nil
}

// find is the place of the item with that hash, or -1. Trainers predict in the order of the bundle, so it is mostly the
// one expected, and then a million hashes need not be sorted.
func (s *itemSet) find(hash uint64, expected int) int {
	if expected < len(s.items) && s.items[expected].hash == hash {
		return expected
	}
	if s.byHash == nil {
		s.byHash = make([]int32, len(s.items))
		for i := range s.byHash {
			s.byHash[i] = int32(i) //nolint:gosec // n is one, too
		}
		slices.SortFunc(s.byHash, func(a, b int32) int { return cmp.Compare(s.items[a].hash, s.items[b].hash) })
	}
	i, ok := slices.BinarySearchFunc(s.byHash, hash, func(a int32, hash uint64) int { return cmp.Compare(s.items[a].hash, hash) })
	if !ok {
		return -1
	}
	return int(s.byHash[i])
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
	labels := []string{}
	d := pyjson.NewBytes([]byte(text))
	err := d.EachElement(func() error {
		label, err := d.ReadString()
		labels = append(labels, label)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read labels: %w", err)
	}
	return labels, nil
}
