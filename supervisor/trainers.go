package supervisor

import (
	"context"
	"errors"
	"slices"

	"potato/api"
)

// Trainers lists the trainers and whether the local interpreter can run them.
func (s *Supervisor) Trainers(ctx context.Context) (api.TrainerList, error) {
	env, err := s.o.Python.Environment(ctx)
	if err != nil {
		return api.TrainerList{}, err
	}
	s.keepWarm()
	return api.TrainerList{Trainers: env.Trainers}, nil
}

// Schemes lists the study's annotation schemes and whether they can be trained.
func (s *Supervisor) Schemes(ctx context.Context) (api.SchemeList, error) {
	list := api.SchemeList{Schemas: []api.SchemeSummary{}}
	ready, err := s.o.Study.Readiness(ctx)
	if err != nil {
		return list, err
	}
	trainers, err := s.o.Python.Trainers(ctx) // without an interpreter the schemes are there all the same
	if err != nil && ctx.Err() != nil {
		return list, errors.Join(err, ctx.Err())
	}
	for _, r := range ready {
		scheme := r.SchemeSummary
		scheme.Trainers = []string{}
		for _, t := range trainers {
			if slices.Contains(t.Kinds, scheme.Kind) {
				scheme.Trainers = append(scheme.Trainers, t.Name)
			}
		}
		list.Schemas = append(list.Schemas, scheme)
	}
	return list, nil
}
