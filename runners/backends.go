package runners

import (
	"context"
	"fmt"

	"potato/api"
	"potato/project"
)

// backend finds a backend by its name; local needs no entry in the config.
func (s *Supervisor) backend(name string) (api.Backend, bool) {
	b := api.Backend{Name: project.LocalBackend, Type: api.BackendLocal}
	if name != project.LocalBackend {
		of, ok := s.o.Config.ModelTraining.Backends.ByName(name)
		if !ok {
			return b, false
		}
		b = api.Backend{Name: of.Name, Type: of.Type, Host: of.Host, Description: of.Description}
	}
	b.Label = b.MenuLabel()
	b.Default = b.Name == s.o.Config.ModelTraining.DefaultBackend()
	b.Available = s.o.Runners[b.Type] != nil
	if !b.Available {
		b.Reason = fmt.Sprintf("this build cannot start runs on %s backends yet", b.Type)
	}
	return b, true
}

// Backends lists the places where runs train, local first.
func (s *Supervisor) Backends(context.Context) (api.BackendList, error) {
	list := api.BackendList{}
	names := []string{project.LocalBackend}
	for _, b := range s.o.Config.ModelTraining.Backends {
		names = append(names, b.Name)
	}
	for _, name := range names {
		b, _ := s.backend(name)
		if b.Type == api.BackendAgent {
			b.Agent = &api.BackendAgentSeen{}
		}
		list.Backends = append(list.Backends, b)
	}
	return list, nil
}

// Check says whether a run could start on a backend. NotFound has code unknown_backend.
func (s *Supervisor) Check(ctx context.Context, name string, req api.CheckRequest) (api.CheckReport, error) {
	b, ok := s.backend(name)
	if !ok {
		return api.CheckReport{}, api.NotFoundf("unknown_backend", "the config names no backend %q", name).
			WithHint("the backends are: %s", s.backendNames())
	}
	runner := s.o.Runners[b.Type]
	if runner == nil {
		return api.CheckReport{
			Backend: name, Type: b.Type, Summary: fmt.Sprintf("%s: %s", name, b.Reason), GPUs: []api.GPU{}, MissingPackages: []api.MissingPackages{},
			Items: []api.CheckItem{{Level: api.CheckFail, Topic: "backend", Text: b.Reason, Hint: "train on local"}},
		}, nil
	}
	return runner.Check(ctx, CheckOptions{Backend: name, Trainer: req.Trainer, Probe: req.Probe}), nil
}

func (s *Supervisor) backendNames() string {
	names := project.LocalBackend
	for _, b := range s.o.Config.ModelTraining.Backends {
		names += ", " + b.Name
	}
	return names
}
