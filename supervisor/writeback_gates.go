package supervisor

import (
	"context"
	"fmt"
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
			worse, err := s.notBetter(ctx, id, name)
			if err != nil {
				return nil, err
			}
			if worse != "" {
				g.counts.Warnings = append(g.counts.Warnings, worse)
			} else {
				g.enabled[name] = true
				g.counts.SchemasEnabled = append(g.counts.SchemasEnabled, name)
			}
		}
		g.labels[name] = map[string]bool{}
		for _, l := range scheme.Labels {
			g.labels[name][l] = true
		}
	}
	g.exists, err = s.o.Study.Known(ctx)
	return g, err
}

// notBetter says why only_if_better keeps a run from being published for a scheme, or nothing.
func (s *Supervisor) notBetter(ctx context.Context, id api.RunID, schema string) (string, error) {
	if !s.o.Config.ModelTraining.Writeback.OnlyIfBetter {
		return "", nil
	}
	published, err := s.db.PublishedRun(ctx, schema)
	if err != nil || published == "" || published == id {
		return "", err
	}
	c, err := s.db.CompareRuns(ctx, id, published, schema)
	if err != nil || c.First > c.Second {
		return "", err
	}
	if c.N == 0 {
		return fmt.Sprintf("%s: not published, since it shares no held-out items with run %s, which is (only_if_better)", schema, published), nil
	}
	return fmt.Sprintf("%s: not published, since it has %d of %d common held-out items right and run %s, which is published, %d (only_if_better)",
		schema, c.First, c.N, published, c.Second), nil
}
