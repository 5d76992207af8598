package supervisor

import (
	"context"
	"fmt"
	"strings"

	"potato/runners"

	"potato/api"
	"potato/project"
	"potato/store"
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
func (s *Supervisor) Backends(ctx context.Context) (api.BackendList, error) {
	s.keepSeen(ctx)
	list := api.BackendList{}
	for _, name := range s.o.Config.ModelTraining.BackendNames() {
		b, _ := s.backend(name)
		if b.Type == api.BackendAgent {
			seen, err := agentsSeen(ctx, s.db, name)
			if err != nil {
				return list, err
			}
			b.Agent = &seen
		}
		list.Backends = append(list.Backends, b)
	}
	return list, nil
}

// agentsSeen reads which agents of a backend were heard of.
func agentsSeen(ctx context.Context, db *store.DB, backend string) (api.BackendAgentSeen, error) {
	token, err := db.TokenOf(ctx, backend)
	if err != nil {
		return api.BackendAgentSeen{}, err
	}
	agents, err := db.AgentsOf(ctx, backend)
	seen := api.BackendAgentSeen{Registered: token != nil, Agents: agents}
	if token != nil {
		seen.LastSeen = token.LastSeen
	}
	return seen, err
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
	if s.seen != nil {
		s.keepSeen(ctx)
	}
	return runner.Check(ctx, runners.CheckOptions{Backend: name, Trainer: req.Trainer, Probe: req.Probe}), nil
}

// CheckBackend is Supervisor.Check for who has no server: it needs the config and the runners alone.
func CheckBackend(ctx context.Context, o Options, name string, req api.CheckRequest) (api.CheckReport, error) {
	return (&Supervisor{o: o}).Check(ctx, name, req)
}

func (s *Supervisor) backendNames() string { return backendNames(s.o.Config) }

func backendNames(c *project.Config) string {
	return strings.Join(c.ModelTraining.BackendNames(), ", ")
}
