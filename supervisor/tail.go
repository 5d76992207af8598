package supervisor

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"potato/api"
	"potato/project"
	"potato/store"
)

// evaluate is the tail of a run whose predictions are stored: scores, write-back, retention, and only then success (P6).
// Every step works from what is stored and may be done again, and is, after a restart. A step that fails leaves a warning:
// the model and its predictions are there all the same.
func (s *Supervisor) evaluate(ctx context.Context, a *active) {
	warn := func(what string, err error) {
		if err == nil || ctx.Err() != nil {
			return
		}
		e := runError(err, "internal", what+" failed by a fault of this server, whose log has the details")
		s.log.Error(what+" failed", "run", a.id, "err", err)
		s.note(ctx, a, "warning", e.Message)
		if err := s.update(context.WithoutCancel(ctx), a.id, store.RunUpdate{Warn: []string{e.Message}}); err != nil {
			s.log.Error("cannot store a warning", "run", a.id, "err", err)
		}
	}
	warn("copying the artifacts", s.fetchOf(ctx, a))
	warn("computing the scores", s.insist(ctx, "computing the scores", func() error { return s.score(ctx, a) }))
	s.step(ctx, a, "publishing predictions")
	warn("publishing the predictions", s.insist(ctx, "publishing the predictions", func() error {
		_, err := s.writeback(ctx, a.id, false)
		return err
	}))
	warn("removing the files of older runs", s.prune(ctx))
	var r store.Run
	err := s.insist(ctx, "reading the run", func() (err error) {
		r, err = s.db.RunByID(ctx, a.id)
		return err
	})
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.log.Error("cannot read the run", "run", a.id, "err", err)
		return
	}
	for _, note := range r.Result.Notes {
		s.note(ctx, a, "info", note)
	}
	message := summary(r)
	s.note(ctx, a, "info", message)
	s.removeJob(a.id)
	s.end(ctx, a.id, api.RunEvaluating, api.RunSuccess, store.RunUpdate{Message: &message})
}

// insist does a step again while the database cannot be written for a while: what is stored is whole, and the step would be
// missing for good.
func (s *Supervisor) insist(ctx context.Context, what string, step func() error) error {
	for {
		err := step()
		if !isDiskFull(err) && !api.HasCode(err, "database_busy") && !api.HasCode(err, "database_gone") {
			return err
		}
		s.log.Error(what+" has to wait; trying again", "err", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * s.o.LimitEvery):
		}
	}
}

func (s *Supervisor) step(ctx context.Context, a *active, step string) {
	if err := s.update(ctx, a.id, store.RunUpdate{Step: &step}); err != nil && ctx.Err() == nil {
		s.log.Warn("cannot store the step", "run", a.id, "err", err)
	}
}

// summary is a successful run in one sentence.
func summary(r store.Run) string {
	text := fmt.Sprintf("Trained on %d items", r.NTrain)
	if len(r.Scores) == 0 {
		return text
	}
	for _, split := range []struct {
		name   string
		n      int
		scores *api.SplitScores
	}{{"test", r.NTest, r.Scores[0].Test}, {"val", r.NVal, r.Scores[0].Val}} {
		if split.scores == nil || split.scores.Accuracy == nil {
			continue
		}
		on := fmt.Sprintf("the %d", split.n)
		if n := split.scores.N; n < split.n {
			on = fmt.Sprintf("%d of the %d", n, split.n)
		}
		return fmt.Sprintf("%s; accuracy %.3f on %s items of the %s split", text, *split.scores.Accuracy, on, split.name)
	}
	return text
}

// storePredictions takes a run's predictions in: read, judged and stored row by row, all of them or none.
func (s *Supervisor) storePredictions(ctx context.Context, a *active, from io.Reader) error {
	bundle, err := project.OpenBundle(s.folder(a.id).bundle())
	if err != nil {
		return err
	}
	r, err := s.db.RunByID(ctx, a.id)
	if err != nil {
		return err
	}
	rows := api.ReadPredictions(from)
	if r.Result != nil && r.Result.NPredictions != nil {
		rows = whole(rows, *r.Result.NPredictions)
	}
	n, err := s.db.StorePredictions(ctx, a.id, rows, api.NewPredictionRules(bundle.Manifest).Check)
	if err != nil {
		return fmt.Errorf("store the predictions of run %s: %w", a.id, err)
	}
	s.log.Info("predictions are stored", "run", a.id, "n", n)
	s.hub.change(a.id)
	return nil
}

// whole is rows that end in an error when they are not as many as the worker has written: the file was cut off since.
func whole(rows iter.Seq2[api.Prediction, error], want int64) iter.Seq2[api.Prediction, error] {
	return func(yield func(api.Prediction, error) bool) {
		n := int64(0)
		for p, err := range rows {
			n++
			if !yield(p, err) {
				return
			}
		}
		if n != want {
			yield(api.Prediction{}, api.Invalidf("bad_prediction", "the predictions file holds %d predictions, and the worker reported %d", n, want).
				WithHint("the file was changed after the trainer had written it; look whether the disk is full and train again"))
		}
	}
}

// prune removes the files and predictions of runs outside the newest retain_runs (R11). The folder goes first: after a
// crash in between the run is found again.
func (s *Supervisor) prune(ctx context.Context) error {
	s.settle.Lock()
	defer s.settle.Unlock()
	ids, err := s.db.PrunableRuns(ctx, s.o.Config.ModelTraining.RetainRuns)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if s.activeRun(id) != nil {
			continue // just ending
		}
		if err := os.RemoveAll(string(s.folder(id))); err != nil {
			return fmt.Errorf("remove the files of run %s: %w", id, err)
		}
		if err := s.db.PruneRun(ctx, id); err != nil {
			return err
		}
		s.log.Info("run is pruned", "run", id)
		s.hub.change(id)
	}
	return nil
}
