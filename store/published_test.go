package store_test

import (
	"slices"
	"testing"
	"time"

	"potato/api"
	"potato/store"
)

var sentiment = []string{"sentiment"}

func showAll(store.Candidate) bool { return true }

func mustSuccess(tb testing.TB, db *store.DB) api.RunID {
	tb.Helper()
	id := mustRun(tb, db, api.RunRunning)
	mustItems(tb, db, id)
	mustPredictions(tb, db, id)
	must(tb, db.MoveRun(tb.Context(), id, api.RunRunning, api.RunEvaluating, store.RunUpdate{}))
	must(tb, db.MoveRun(tb.Context(), id, api.RunEvaluating, api.RunSuccess, store.RunUpdate{}))
	return id
}

func mustShow(t *testing.T, db *store.DB, item string, want api.RunID) {
	t.Helper()
	shown, err := db.PublishedOf(t.Context(), item)
	must(t, err)
	if got := shown["sentiment"].RunID; got != want {
		t.Errorf("item %s shows run %q, want %q", item, got, want)
	}
}

func TestPublishReplacesTheWholeSet(t *testing.T) {
	db := mustOpen(t)
	first, second := mustSuccess(t, db), mustSuccess(t, db)
	must(t, db.PublishPredictions(t.Context(), first, sentiment, showAll))
	mustShow(t, db, "u1", first)
	var asked []string
	must(t, db.PublishPredictions(t.Context(), second, sentiment, func(c store.Candidate) bool {
		asked = append(asked, c.InstanceID)
		return c.InstanceID != "u1"
	}))
	if want := []string{"v1", "v2", "x1", "u1", "u2", "u3"}; !slices.Equal(asked, want) {
		t.Errorf("asked about %v, want %v", asked, want)
	}
	mustShow(t, db, "u1", "") // the first run's prediction went down with the rest of its set
	mustShow(t, db, "u2", second)
	counts, err := db.CountPublished(t.Context())
	must(t, err)
	if counts[first] != 0 || counts[second] != 5 {
		t.Errorf("got %v, want 5 of the second run alone", counts)
	}
	for id, want := range map[api.RunID]int{first: 0, second: 5} {
		r, err := db.RunByID(t.Context(), id)
		must(t, err)
		if r.NPublished != want {
			t.Errorf("run %s says annotators see %d of its predictions, want %d", id, r.NPublished, want)
		}
	}
	n, err := db.RetractPredictions(t.Context(), second)
	must(t, err)
	if n != 5 {
		t.Errorf("retracted %d, want 5", n)
	}
	mustShow(t, db, "u2", "")
}

func TestLeakGuardOutlivesItsRun(t *testing.T) {
	db := mustOpen(t)
	first := mustRun(t, db, api.RunRunning)
	must(t, db.StoreRunItems(t.Context(), first, each(api.BundleItem{InstanceID: "u1", Split: api.SplitTrain})))
	must(t, db.MoveRun(t.Context(), first, api.RunRunning, api.RunError, store.RunUpdate{}))
	must(t, db.DeleteRun(t.Context(), first))
	second := mustSuccess(t, db)
	trained := map[string]bool{}
	must(t, db.Candidates(t.Context(), second, func(c store.Candidate) error {
		trained[c.InstanceID] = c.Trained
		return nil
	}))
	if !trained["u1"] || trained["u2"] || len(trained) != 6 {
		t.Errorf("got %v, want u1 alone of six", trained)
	}
}

func TestPruneKeepsTheNewestAndTheLive(t *testing.T) {
	db := mustOpen(t)
	live, old := mustSuccess(t, db), mustSuccess(t, db)
	must(t, db.PublishPredictions(t.Context(), live, sentiment, showAll))
	running, failed := mustRun(t, db, api.RunRunning), mustRun(t, db, api.RunSuccess)
	ids, err := db.PrunableRuns(t.Context(), 1)
	must(t, err)
	if want := []api.RunID{old}; !slices.Equal(ids, want) {
		t.Fatalf("got %v, want %v: not the live %s, the running %s or the newest %s", ids, want, live, running, failed)
	}
	wantCode(t, db.PruneRun(t.Context(), live), "run_live")
	wantCode(t, db.PruneRun(t.Context(), running), "run_live")
	for range 2 { // found, and remembered
		if page, err := db.PredictionsPage(t.Context(), old, store.PredictionFilter{Q: "film"}); err != nil || page.Total != 2 {
			t.Fatalf("got %d, %v, want 2 of the search", page.Total, err)
		}
	}
	must(t, db.PruneRun(t.Context(), old))
	if page, err := db.PredictionsPage(t.Context(), old, store.PredictionFilter{Q: "film"}); err != nil || page.Total != 0 {
		t.Errorf("after pruning: got %d, %v, want nothing of the search", page.Total, err)
	}
	r, err := db.RunByID(t.Context(), old)
	must(t, err)
	page, err := db.PredictionsPage(t.Context(), old, store.PredictionFilter{})
	must(t, err)
	if !r.Pruned || page.Total != 0 || len(page.Predictions) != 0 {
		t.Errorf("got pruned %v and %d predictions, want true and none", r.Pruned, page.Total)
	}
	ids, err = db.PrunableRuns(t.Context(), 1)
	must(t, err)
	if len(ids) != 0 {
		t.Errorf("got %v after pruning, want none", ids)
	}
}

func TestDeleteRun(t *testing.T) {
	db := mustOpen(t)
	id, running := mustSuccess(t, db), mustRun(t, db, api.RunRunning)
	must(t, db.PublishPredictions(t.Context(), id, sentiment, showAll))
	wantCode(t, db.DeleteRun(t.Context(), running), "run_not_over")
	must(t, db.DeleteRun(t.Context(), id))
	_, err := db.RunByID(t.Context(), id)
	wantCode(t, err, "run_not_found")
	wantCode(t, db.DeleteRun(t.Context(), id), "run_not_found")
	mustShow(t, db, "u1", "")
}

func TestRetrainIsRemembered(t *testing.T) {
	dir := t.TempDir()
	db := mustOpenIn(t, dir)
	got, err := db.LastRetrain(t.Context())
	must(t, err)
	if got != (store.Retrain{}) {
		t.Fatalf("got %+v, want nothing", got)
	}
	for i, n := range []int{5, 30} {
		r := api.Run{RunID: api.NewRunID(time.Unix(int64(i), 0)), Trigger: api.TriggerAuto}
		must(t, db.CreateRun(t.Context(), r, &store.Retrain{NAnnotations: n, StartedAt: 12.5}))
	}
	last, err := db.LatestRun(t.Context())
	must(t, err)
	want := store.Retrain{NAnnotations: 30, StartedAt: 12.5, RunID: last.RunID}
	got, err = mustOpenIn(t, dir).LastRetrain(t.Context())
	must(t, err)
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
