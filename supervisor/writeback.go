package supervisor

import (
	"context"
	"fmt"
	"slices"

	"potato/api"
	"potato/store"
)

// Writeback publishes a successful run's predictions again, or with dryRun only counts what that would do. Conflict has
// code no_predictions.
//
// To publish means to decide which prediction an item shows: the table `published` of this server is the truth of that.
// Handing the published predictions to the annotation tool is a step of its own that starts from this table.
func (s *Supervisor) Writeback(ctx context.Context, id api.RunID, dryRun bool) (api.Writeback, error) {
	r, err := s.db.RunByID(ctx, id)
	if err != nil {
		return api.Writeback{}, err
	}
	if r.Status != api.RunSuccess || r.NPredictions == nil {
		return api.Writeback{}, api.Conflictf("no_predictions", "run %s has no predictions to publish (%s)", id, r.Status).
			WithHint("only a successful run whose files are still there can be published")
	}
	w, err := s.writeback(ctx, id, dryRun)
	if err == nil && !dryRun {
		s.hub.change(id)
	}
	return w, err
}

// writeback publishes what the gates of R8 let pass and keeps the counts with the run.
func (s *Supervisor) writeback(ctx context.Context, id api.RunID, dryRun bool) (api.Writeback, error) {
	s.settle.Lock()
	defer s.settle.Unlock()
	g, err := s.gates(ctx, id)
	if err != nil {
		return api.Writeback{}, err
	}
	if dryRun || len(g.counts.SchemasEnabled) == 0 {
		err = s.db.Candidates(ctx, id, func(c store.Candidate) error {
			g.show(c)
			return nil
		})
	} else {
		err = s.db.PublishPredictions(ctx, id, g.counts.SchemasEnabled, g.show)
	}
	if err != nil || dryRun {
		return g.counts, err
	}
	if err := s.db.SaveWriteback(ctx, id, g.counts); err != nil {
		return g.counts, fmt.Errorf("store the counts of the write-back: %w", err)
	}
	return g.counts, nil
}

// gates decide which predictions annotators see, and count every skip by its reason. The first reason counts.
type gates struct {
	enabled       map[string]bool
	labels        map[string]map[string]bool // scheme → the labels that the config has now, or annotators gave
	exists        func(instanceID string) bool
	minConfidence float64
	counts        api.Writeback
}

func (g *gates) show(c store.Candidate) bool {
	g.counts.NRead++
	switch {
	case c.Trained:
		g.counts.NSkippedTrainSplit++
	case !g.enabled[c.SchemaName]:
		g.counts.NSkippedSchemaNotEnabled++
	case c.Confidence != nil && !(*c.Confidence >= g.minConfidence): // NaN is no confidence (P9)
		g.counts.NSkippedLowConfidence++
	case !g.known(c):
		g.counts.NSkippedUnknownLabel++
	case !g.exists(c.InstanceID):
		g.counts.NSkippedMissingItem++
	default:
		g.counts.NWritten++
		return true
	}
	return false
}

// known reports whether the scheme still has every label of the prediction (T52).
func (g *gates) known(c store.Candidate) bool {
	return !slices.ContainsFunc(c.Labels, func(l string) bool { return !g.labels[c.SchemaName][l] })
}
