package runners

import (
	"context"
	"slices"

	"potato/api"
)

// gates sets up the gates for a run's predictions from the config and the study as they are now.
func (s *Supervisor) gates(ctx context.Context, id api.RunID) (*gates, error) {
	r, err := s.db.RunByID(ctx, id)
	if err != nil {
		return nil, err
	}
	c := s.o.Config.ModelTraining.Writeback
	g := &gates{
		enabled: map[string]bool{}, labels: map[string]map[string]bool{}, minConfidence: c.MinConfidence,
		counts: api.Writeback{SchemasEnabled: []string{}, Warnings: []string{}},
	}
	for _, name := range r.SchemaNames {
		scheme, there := s.o.Config.SchemeByName(name)
		if slices.Contains(c.Schemas, name) && there {
			g.enabled[name] = true
			g.counts.SchemasEnabled = append(g.counts.SchemasEnabled, name)
		}
		g.labels[name] = map[string]bool{}
		for _, l := range scheme.Labels {
			g.labels[name][l] = true
		}
	}
	g.exists, err = s.o.Study.Known(ctx)
	return g, err
}
