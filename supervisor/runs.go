package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"potato/api"
	"potato/project"
	"potato/store"
)

// RunByID reads a run, with its place in the queue and its duration up to now. NotFound has code run_not_found.
func (s *Supervisor) RunByID(ctx context.Context, id api.RunID) (api.Run, error) {
	r, err := s.db.RunByID(ctx, id)
	if err != nil {
		return api.Run{}, err
	}
	runs, err := s.asPeopleSee(ctx, []store.Run{r})
	if err != nil {
		return api.Run{}, err
	}
	return runs[0], nil
}

// Runs reads a page of runs.
func (s *Supervisor) Runs(ctx context.Context, f store.RunFilter) (api.RunList, error) {
	page, next, err := s.db.Runs(ctx, f)
	if err != nil {
		return api.RunList{}, err
	}
	runs, err := s.asPeopleSee(ctx, page)
	return api.RunList{Runs: runs, Next: next}, err
}

// runsByID reads runs of which some may have been deleted meanwhile.
func (s *Supervisor) runsByID(ctx context.Context, ids []api.RunID) ([]api.Run, error) {
	runs := []store.Run{}
	for _, id := range ids {
		r, err := s.db.RunByID(ctx, id)
		if api.HasCode(err, "run_not_found") {
			continue
		}
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return s.asPeopleSee(ctx, runs)
}

// underWay reads the runs that are queued or hold a place, in the order of the queue.
func (s *Supervisor) underWay(ctx context.Context) ([]api.Run, error) {
	runs, err := s.db.RunsByStatus(ctx, notOver...)
	if err != nil {
		return nil, err
	}
	return s.asPeopleSee(ctx, runs)
}

// asPeopleSee adds what depends on the moment: places in the queue, and how long a run has been under way.
func (s *Supervisor) asPeopleSee(ctx context.Context, runs []store.Run) ([]api.Run, error) {
	var places map[api.RunID]*api.Queue
	if slices.ContainsFunc(runs, func(r store.Run) bool { return r.Status == api.RunQueued }) {
		var err error
		if places, err = s.queuePlaces(ctx); err != nil {
			return nil, err
		}
	}
	seen := make([]api.Run, len(runs))
	for i, r := range runs {
		if r.Status == api.RunQueued {
			r.Queue = places[r.RunID]
			if r.Queue != nil && r.Queue.WaitingFor == forAgent(r.Backend) {
				r.Hint = s.startAgent(r.Backend)
			}
		}
		if r.StartedAt != nil && r.Duration == nil {
			d := max(s.seconds()-*r.StartedAt, 0)
			r.Duration = &d
		}
		if r.Pruned {
			r.Warnings = append(r.Warnings, fmt.Sprintf("its files and predictions were removed: retain_runs keeps those of the newest %d", s.o.Config.ModelTraining.RetainRuns))
		}
		if r.SchedulerSince != nil {
			until := s.seconds()
			if r.FinishedAt != nil {
				until = *r.FinishedAt
			}
			r.SchedulerWaitS += max(until-*r.SchedulerSince, 0)
		}
		if r.CopyError != "" {
			r.Warnings = append(r.Warnings, r.CopyError)
		}
		if r.Status.Final() && !s.copying(r.RunID) {
			r.Step = "" // of a copy that a restart cut off
		}
		seen[i] = withLists(r.Run)
	}
	return seen, nil
}

// withLists gives a run empty lists and maps where it has none: JSON has them, not null.
func withLists(r api.Run) api.Run {
	if r.SchemaNames == nil {
		r.SchemaNames = []string{}
	}
	if r.Kinds == nil {
		r.Kinds = []api.SchemeKind{}
	}
	if r.Params == nil {
		r.Params = map[string]any{}
	}
	if r.Metrics == nil {
		r.Metrics = api.Metrics{}
	}
	if r.MetricsBySchema == nil {
		r.MetricsBySchema = map[string]api.Metrics{}
	}
	if r.Warnings == nil {
		r.Warnings = []string{}
	}
	if r.Environment == nil {
		r.Environment = map[string]string{}
	}
	return r
}

// Cancel stops a run that is queued, building or running. Later it is a Conflict with code too_late, and of a run that
// has ended one with code run_over.
func (s *Supervisor) Cancel(ctx context.Context, id api.RunID) (api.Run, error) {
	was, err := s.db.RequestCancel(ctx, id)
	if err != nil {
		return api.Run{}, err
	}
	s.log.Info("cancel was asked for", "run", id, "status", was)
	if a := s.activeRun(id); a != nil {
		a.end()
		s.hub.change(id)
	} else if was == api.RunQueued {
		// A conflict means that the run was just taken: whoever took it sees the flag.
		s.endCancelled(ctx, id, api.RunQueued)
		if a := s.activeRun(id); a != nil {
			a.end()
		}
	}
	return s.RunByID(ctx, id)
}

// DeleteRun removes a run that has ended with everything of it: rows, predictions, folder.
func (s *Supervisor) DeleteRun(ctx context.Context, id api.RunID) error {
	s.settle.Lock()
	defer s.settle.Unlock()
	r, err := s.db.RunByID(ctx, id)
	if err != nil {
		return err
	}
	if !r.Status.Final() || s.activeRun(id) != nil {
		return api.Conflictf("run_not_over", "run %s is %s", id, r.Status).WithHint("cancel it first")
	}
	// The folder goes first: what is left of a crash in between is a row that can be deleted again.
	if err := os.RemoveAll(string(s.folder(id))); err != nil {
		return fmt.Errorf("remove the folder of run %s: %w", id, err)
	}
	if err := s.db.DeleteRun(ctx, id); err != nil {
		return err
	}
	s.log.Info("run is deleted", "run", id)
	s.hub.change(id)
	return nil
}

// Retract takes a run's predictions off the items that show them and returns how many items that were.
func (s *Supervisor) Retract(ctx context.Context, id api.RunID) (int, error) {
	if _, err := s.db.RunByID(ctx, id); err != nil {
		return 0, err
	}
	s.settle.Lock()
	defer s.settle.Unlock()
	n, err := s.db.RetractPredictions(ctx, id)
	if err != nil {
		return 0, err
	}
	s.hub.change(id)
	return n, nil
}

// Predictions reads a page of a run's predictions.
func (s *Supervisor) Predictions(ctx context.Context, id api.RunID, f store.PredictionFilter) (api.PredictionList, error) {
	return s.db.PredictionsPage(ctx, id, f)
}

// ExportPredictions hands over every prediction that matches, in the order of the page, without holding them in memory. Texts
// are whole, as long as the run's bundle is there (T54).
func (s *Supervisor) ExportPredictions(ctx context.Context, id api.RunID, f store.PredictionFilter, emit func(api.PredictionRow) error) (err error) {
	if _, err := s.db.RunByID(ctx, id); err != nil {
		return err
	}
	var texts *project.Texts
	if bundle, err := project.OpenBundle(s.folder(id).bundle()); err == nil {
		texts = bundle.Texts(store.TextLimit)
		defer func() { err = errors.Join(err, texts.Close()) }()
	}
	return s.db.StreamPredictions(ctx, id, f, func(row api.PredictionRow) error {
		if texts != nil && strings.HasSuffix(row.Text, "…") {
			text, err := texts.Of(row.Split, row.InstanceID)
			if err != nil && !api.HasCode(err, "text_not_found") {
				return err
			}
			if err == nil {
				row.Text = text
			}
		}
		return emit(row)
	})
}

// Metrics is a run's scores as tables and curves.
func (s *Supervisor) Metrics(ctx context.Context, id api.RunID) (api.MetricsReport, error) {
	r, err := s.db.RunByID(ctx, id)
	if err != nil {
		return api.MetricsReport{}, err
	}
	report := api.MetricsReport{Schemas: r.Scores, Curves: []api.Curve{}}
	if report.Schemas == nil {
		report.Schemas = []api.SchemaScores{}
	}
	curves := newCurves()
	if err := readEvents(s.folder(id).file(eventsFile), 0, func(e api.Event) bool {
		curves.add(e)
		return ctx.Err() == nil
	}); err != nil {
		return api.MetricsReport{}, err
	}
	report.Curves = curves.list()
	return report, ctx.Err()
}
