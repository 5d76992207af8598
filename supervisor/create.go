package supervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"potato/api"
	"potato/project"
	"potato/store"
	"potato/trainers"
)

// CreateRun puts a run into the queue, or says what is wrong with the request: Invalid with the field's path, Conflict
// with code unknown_backend, backend_unavailable or local_only.
func (s *Supervisor) CreateRun(ctx context.Context, req api.RunRequest, trigger api.Trigger, by string) (api.RunStarted, error) {
	return s.createRun(ctx, req, trigger, by, nil)
}

func (s *Supervisor) createRun(ctx context.Context, req api.RunRequest, trigger api.Trigger, by string, retrain *store.Retrain) (api.RunStarted, error) {
	run, err := s.checked(ctx, req)
	if err != nil {
		return api.RunStarted{}, err
	}
	run.Trigger, run.CreatedBy, run.CreatedAt = trigger, by, s.seconds()
	for {
		run.RunID = api.NewRunID(s.o.Now())
		err := s.db.CreateRun(ctx, run, retrain)
		if err == nil {
			break
		}
		if !api.HasCode(err, "run_exists") { // two of a second may draw the same six digits
			return api.RunStarted{}, err
		}
	}
	s.log.Info("run is queued", "run", run.RunID, "trainer", run.Trainer, "schemas", run.SchemaNames, "backend", run.Backend, "trigger", trigger)
	s.hub.change(run.RunID)
	s.look(ctx)
	r, err := s.RunByID(context.WithoutCancel(ctx), run.RunID)
	if err != nil {
		return api.RunStarted{}, err
	}
	return api.RunStarted{RunID: r.RunID, Started: r.Status != api.RunQueued, Queue: r.Queue}, nil
}

// checked turns a request into a run, with all that can be said against it before anything is begun.
func (s *Supervisor) checked(ctx context.Context, req api.RunRequest) (api.Run, error) {
	c := s.o.Config.ModelTraining
	run := api.Run{
		Trainer: req.Trainer, SchemaNames: req.Schemas, Backend: req.Backend, Params: req.Params, SplitSeed: c.SplitSeed,
		Message: "Waiting in the queue",
	}
	if run.Params == nil {
		run.Params = map[string]any{}
	}
	if run.Backend == "" {
		run.Backend = c.DefaultBackend()
	}
	b, ok := s.backend(run.Backend)
	switch {
	case !ok:
		return run, api.Conflictf("unknown_backend", "the config names no backend %q", run.Backend).
			WithHint("the backends are: %s", s.backendNames()).
			WithProblems(api.Problem{Path: "body.backend", Message: "names no backend"})
	case !b.Available:
		return run, api.Conflictf("backend_unavailable", "%s", b.Reason).WithHint("choose another backend").
			WithProblems(api.Problem{Path: "body.backend", Message: b.Reason})
	}
	schemes, err := s.schemes(req.Schemas)
	if err != nil {
		return run, err
	}
	for _, scheme := range schemes {
		run.Kinds = append(run.Kinds, scheme.Kind)
	}
	if err := s.checkTrainer(ctx, run, schemes); err != nil {
		return run, err
	}
	return run, s.o.Study.CheckTrainable(ctx, req.Schemas)
}

// schemes finds the schemes of a run in the config.
func (s *Supervisor) schemes(names []string) ([]api.Scheme, error) {
	if len(names) == 0 {
		return nil, api.Invalidf("bad_schemas", "No schema is named").WithHint("listSchemas names those that can be trained").
			WithProblems(api.Problem{Path: "body.schemas", Message: "name at least one scheme"})
	}
	schemes := []api.Scheme{}
	for _, name := range names {
		if scheme, ok := s.o.Config.SchemeByName(name); ok { // CheckTrainable tells of those that are not there
			schemes = append(schemes, scheme)
		}
	}
	return schemes, nil
}

// checkTrainer refuses a trainer that is not there, that does not take the schemes or the parameters, or that cannot go to
// the backend. When the local interpreter cannot be asked, the run itself will say so, with a row and a log (T56).
func (s *Supervisor) checkTrainer(ctx context.Context, run api.Run, schemes []api.Scheme) error {
	trainers, err := s.o.Python.Trainers(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.log.Warn("cannot ask the local interpreter for its trainers", "err", err)
		return nil
	}
	i := slices.IndexFunc(trainers, func(t api.Trainer) bool { return t.Name == run.Trainer })
	if i < 0 {
		return unknownTrainer(run.Trainer, trainers)
	}
	t := trainers[i]
	if !t.Available && len(t.Kinds) == 0 { // its file is broken; of what is only missing here the run tells
		return api.Invalidf("unknown_trainer", "Trainer '%s' cannot be used: %s", t.Name, t.UnavailableReason).
			WithHint("mend the file in trainers_dir").WithProblems(api.Problem{Path: "body.trainer", Message: "cannot be used"})
	}
	if t.LocalOnly && run.Backend != project.LocalBackend {
		return api.Conflictf("local_only", "Trainer '%s' runs on the server's own machine only, not on %s", t.Name, run.Backend).
			WithHint("start the run on local").WithProblems(api.Problem{Path: "body.backend", Message: "this trainer is local only"})
	}
	for i, scheme := range schemes {
		if scheme.Kind == api.KindUnsupported {
			continue // CheckTrainable says why
		}
		if !slices.Contains(t.Kinds, scheme.Kind) {
			return api.Invalidf("bad_schemas", "Trainer '%s' takes no schemes of the kind %s, which %q is", t.Name, scheme.Kind, scheme.Name).
				WithHint("choose a trainer that takes it").
				WithProblems(api.Problem{Path: fmt.Sprintf("body.schemas[%d]", i), Message: fmt.Sprintf("is of the kind %s", scheme.Kind)})
		}
	}
	return checkParams(t, run.Params)
}

func unknownTrainer(name string, trainers []api.Trainer) *api.Error {
	names := []string{}
	for _, t := range trainers {
		names = append(names, t.Name)
	}
	what := api.Problem{Path: "body.trainer", Message: "names no trainer", Suggestion: api.Suggest(name, names)}
	return api.Invalidf("unknown_trainer", "there is no trainer %q", name).WithProblems(what).
		WithHint("listTrainers names those that are there")
}

// checkParams refuses parameters that the trainer does not take.
func checkParams(t api.Trainer, params map[string]any) error {
	problems := trainers.ValidateParams(t.Params, params)
	if len(problems) == 0 {
		return nil
	}
	texts := []string{}
	for i := range problems {
		problems[i].Path = "body." + problems[i].Path
		texts = append(texts, problems[i].Message)
	}
	return api.Invalidf("bad_params", "Trainer '%s' does not take these parameters: %s", t.Name, strings.Join(texts, "; ")).
		WithHint("listTrainers has the parameters of each trainer").WithProblems(problems...)
}
