package store_test

import (
	"slices"
	"strings"
	"testing"

	"potato/api"
	"potato/store"
)

// Half a surrogate pair, as texts from the web hold it, goes through the database as it is: ids and labels that differ in
// nothing else stay apart, and a text that is cut short is cut between characters (T54).
func TestT54HalvesOfSurrogatePairs(t *testing.T) {
	const high, low = "a\xed\xa0\xbd", "a\xed\xb8\x80"
	db := mustOpen(t)
	id := mustRun(t, db, api.RunRunning)
	long := strings.Repeat("\xed\xa0\xbd", 501)
	must(t, db.StoreRunItems(t.Context(), id, each(
		api.BundleItem{InstanceID: high, Split: api.SplitVal, Text: high, Targets: map[string][]string{"sentiment": {high}}},
		api.BundleItem{InstanceID: low, Split: api.SplitVal, Text: long, Targets: map[string][]string{"sentiment": {high}}},
	)))
	_, err := db.StorePredictions(t.Context(), id, each(prediction(high, high, 0.5), prediction(low, low, 0.5)), anyLabel)
	must(t, err)
	page, err := db.PredictionsPage(t.Context(), id, store.PredictionFilter{})
	must(t, err)
	if len(page.Predictions) != 2 {
		t.Fatalf("got %+v, want two rows", page)
	}
	for i, want := range []struct {
		id, text string
		correct  bool
	}{{high, high, true}, {low, long[:1500] + "…", false}} {
		got := page.Predictions[i]
		if got.InstanceID != want.id || got.Text != want.text || got.Payload.Label != want.id || got.Payload.Scores[want.id] != 0.5 ||
			*got.Correct != want.correct || !slices.Equal(got.Target, []string{high}) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if page, err := db.PredictionsPage(t.Context(), id, store.PredictionFilter{Label: low}); err != nil || page.Total != 1 || page.Predictions[0].InstanceID != low {
		t.Errorf("of label %+q: got %+v, %v, want the second alone", low, page, err)
	}
	must(t, db.MoveRun(t.Context(), id, api.RunRunning, api.RunEvaluating, store.RunUpdate{}))
	must(t, db.PublishPredictions(t.Context(), id, sentiment, showAll))
	for _, item := range []string{high, low} {
		if shown, err := db.PublishedOf(t.Context(), item); err != nil || shown["sentiment"].Payload.Label != item {
			t.Errorf("item %q shows %+v, %v", item, shown, err)
		}
	}
}
