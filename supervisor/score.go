package supervisor

import (
	"context"
	"errors"
	"iter"
	"maps"
	"strings"

	"potato/api"
	"potato/project"
	"potato/scores"
	"potato/store"
)

// score computes the run's held-out scores from the stored predictions and the bundle's own targets, and keeps them (R4).
// Of the worker's figures those on training rows are kept beside, and no other that has a held-out figure's name.
func (s *Supervisor) score(ctx context.Context, a *active) error {
	r, err := s.db.RunByID(ctx, a.id)
	if err != nil {
		return err
	}
	bundle, err := project.OpenBundle(s.folder(a.id).bundle())
	if err != nil {
		return err
	}
	got, err := scores.Score(bundle.Manifest, bundle.HeldOut(), s.heldOutPredictions(ctx, a.id))
	if err != nil {
		return err
	}
	said := r.Result
	for i := range got.Schemas {
		one := &got.Schemas[i]
		figures := said.MetricsBySchema[one.Schema]
		if figures == nil && i == 0 {
			figures = said.Metrics
		}
		one.Train = onTraining(figures)
		maps.Copy(got.BySchema[one.Schema], one.Train)
	}
	maps.Copy(got.Metrics, onTraining(said.Metrics))
	return s.update(ctx, a.id, store.RunUpdate{
		Scores: got.Schemas, Metrics: got.Metrics, MetricsBySchema: got.BySchema, Warn: limited(got.Warnings),
	})
}

// onTraining are the worker's figures, without those that only the server may give.
func onTraining(figures map[string]*float64) api.Metrics {
	kept := api.Metrics{}
	for name, v := range figures {
		if !strings.HasPrefix(name, "val_") && !strings.HasPrefix(name, "test_") {
			kept[name] = v
		}
	}
	return kept
}

// heldOutPredictions reads the stored predictions of the val and test splits.
func (s *Supervisor) heldOutPredictions(ctx context.Context, id api.RunID) iter.Seq2[api.Prediction, error] {
	return func(yield func(api.Prediction, error) bool) {
		enough := errors.New("enough")
		for _, split := range []string{api.SplitVal, api.SplitTest} {
			err := s.db.StreamPredictions(ctx, id, store.PredictionFilter{Split: split}, func(p api.PredictionRow) error {
				if !yield(api.Prediction{InstanceID: p.InstanceID, SchemaName: p.SchemaName, Payload: p.Payload, Confidence: p.Confidence}, nil) {
					return enough
				}
				return nil
			})
			if errors.Is(err, enough) {
				return
			}
			if err != nil {
				yield(api.Prediction{}, err)
				return
			}
		}
	}
}
