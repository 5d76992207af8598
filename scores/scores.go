package scores

import (
	"fmt"
	"iter"

	"potato/api"
)

// Result is what a run's predictions on held-out items are worth.
type Result struct {
	Schemas  []api.SchemaScores // in the order of the manifest
	Metrics  api.Metrics        // flat figures of the first scheme
	BySchema map[string]api.Metrics
	Warnings []string // of all schemes and splits, for the run
}

// roles are the splits that are scored.
var roles = []string{api.SplitVal, api.SplitTest}

// Score compares predictions with the targets of the held-out items. Both are read once and in any order; predictions for
// other items, a second one for the same item and scheme, and such for schemes that the bundle does not have are passed over. What is kept
// is small: ids and label numbers of the held-out items.
func Score(m api.Manifest, heldOut iter.Seq2[api.BundleItem, error], predictions iter.Seq2[api.Prediction, error]) (Result, error) {
	t := newTruth(m)
	for item, err := range heldOut {
		if err != nil {
			return Result{}, fmt.Errorf("read the held-out items: %w", err)
		}
		t.add(item)
	}
	for p, err := range predictions {
		if err != nil {
			return Result{}, fmt.Errorf("read the predictions: %w", err)
		}
		t.predict(p)
	}
	r := Result{Metrics: api.Metrics{}, BySchema: map[string]api.Metrics{}}
	for i, s := range t.schemes {
		scores := s.scores(m)
		r.Schemas = append(r.Schemas, scores)
		r.BySchema[s.Name] = Flat(scores)
		if i == 0 {
			r.Metrics = r.BySchema[s.Name]
		}
		for _, w := range allWarnings(scores) {
			if len(t.schemes) > 1 {
				w = s.Name + ": " + w
			}
			r.Warnings = append(r.Warnings, w)
		}
	}
	return r, nil
}

func allWarnings(s api.SchemaScores) []string {
	out := append([]string(nil), s.Warnings...)
	for _, split := range []*api.SplitScores{s.Val, s.Test} {
		if split != nil {
			out = append(out, split.Warnings...)
		}
	}
	return out
}

// Flat gives a scheme's scores the names that a run's metrics have. The names depend on the kind alone: a figure that cannot be
// given is there and null.
func Flat(s api.SchemaScores) api.Metrics {
	m := api.Metrics{}
	for i, split := range []*api.SplitScores{s.Val, s.Test} {
		name := roles[i] + "_"
		if split == nil {
			split = &api.SplitScores{}
		}
		m[name+"accuracy"], m[name+"macro_f1"], m[name+"ece"] = split.Accuracy, split.MacroF1, split.ECE
		switch s.Kind {
		case api.KindOrdinal:
			m[name+"mae"], m[name+"quadratic_kappa"] = split.MAE, split.QuadraticKappa
		case api.KindMultilabel:
			m[name+"micro_f1"] = split.MicroF1
		}
	}
	return m
}
