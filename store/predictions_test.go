package store_test

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"potato/api"
	"potato/store"
)

func prediction(item, label string, confidence float64) api.Prediction {
	return api.Prediction{
		InstanceID: item, SchemaName: "sentiment", Confidence: &confidence,
		Payload: api.Payload{Label: label, Confidence: &confidence, Scores: map[string]float64{label: confidence}},
	}
}

// anyLabel lets every prediction pass that has a label: what the label may be is the caller's rule.
func anyLabel(p api.Prediction) ([]string, error) {
	if p.Payload.Label == "" {
		return nil, api.Invalidf("no_label", "there is no label")
	}
	return []string{p.Payload.Label}, nil
}

// mustItems gives a run four training items, two of val, one of test and three that nobody labelled.
func mustItems(tb testing.TB, db *store.DB, id api.RunID) {
	tb.Helper()
	pos := map[string][]string{"sentiment": {"positive"}}
	must(tb, db.StoreRunItems(tb.Context(), id, each(
		api.BundleItem{InstanceID: "t1", Split: api.SplitTrain}, api.BundleItem{InstanceID: "t2", Split: api.SplitTrain},
		api.BundleItem{InstanceID: "t3", Split: api.SplitTrain}, api.BundleItem{InstanceID: "t4", Split: api.SplitTrain},
		api.BundleItem{InstanceID: "v1", Split: api.SplitVal, Text: "A fine film", Targets: pos},
		api.BundleItem{InstanceID: "v2", Split: api.SplitVal, Text: "A dull film", Targets: map[string][]string{"sentiment": {"negative"}}},
		api.BundleItem{InstanceID: "x1", Split: api.SplitTest, Text: "100% fine", Targets: pos},
		api.BundleItem{InstanceID: "u1", Split: api.SplitUnlabeled, Text: "One"},
		api.BundleItem{InstanceID: "u2", Split: api.SplitUnlabeled, Text: "Two"},
		api.BundleItem{InstanceID: "u3", Split: api.SplitUnlabeled, Text: "Three"},
	)))
}

func mustPredictions(tb testing.TB, db *store.DB, id api.RunID) {
	tb.Helper()
	n, err := db.StorePredictions(tb.Context(), id, each(
		prediction("v1", "positive", 0.9), prediction("v2", "positive", 0.6), prediction("x1", "positive", 0.8),
		prediction("u1", "negative", 0.7), prediction("u2", "positive", 0.5), prediction("u3", "old label", 0.99),
	), anyLabel)
	must(tb, err)
	if n != 6 {
		tb.Fatalf("got %d stored, want 6", n)
	}
}

func TestRefusedPredictionsLeaveNothing(t *testing.T) {
	db := mustOpen(t)
	id := mustRun(t, db, api.RunRunning)
	mustItems(t, db, id)
	for code, rows := range map[string]iter.Seq2[api.Prediction, error]{
		"unknown_item":         each(prediction("v1", "positive", 0.9), prediction("nobody", "positive", 0.9)),
		"train_item":           each(prediction("v1", "positive", 0.9), prediction("t2", "positive", 0.9)),
		"duplicate_prediction": each(prediction("v1", "positive", 0.9), prediction("v1", "negative", 0.9)),
		"no_label":             each(prediction("v1", "", 0.9)),
		"broken_file": func(yield func(api.Prediction, error) bool) {
			_ = yield(prediction("v1", "positive", 0.9), nil) && yield(api.Prediction{}, api.Invalidf("broken_file", "cut"))
		},
	} {
		_, err := db.StorePredictions(t.Context(), id, rows, anyLabel)
		wantCode(t, err, code)
		page, err := db.PredictionsPage(t.Context(), id, store.PredictionFilter{})
		must(t, err)
		if page.Total != 0 || len(page.Predictions) != 0 {
			t.Errorf("%s: got %d rows, want none", code, page.Total)
		}
	}
	mustPredictions(t, db, id)
	_, err := db.StorePredictions(t.Context(), id, each(prediction("nobody", "positive", 0.9)), anyLabel)
	wantCode(t, err, "unknown_item")
	page, err := db.PredictionsPage(t.Context(), id, store.PredictionFilter{})
	must(t, err)
	if page.Total != 6 {
		t.Errorf("a refused second upload: got %d rows, want the 6 from before", page.Total)
	}
}

// Trainers predict in the order of the bundle as a rule, and schemes one after another; any other order means the same.
func TestPredictionsInAnyOrder(t *testing.T) {
	items := []string{"v1", "v2", "x1", "u1", "u2", "u3"}
	backwards := slices.Clone(items)
	slices.Reverse(backwards)
	for _, order := range [][]string{items, backwards, {"u2", "v1", "u3", "x1", "u1", "v2"}} {
		db := mustOpen(t)
		id := mustRun(t, db, api.RunRunning)
		mustItems(t, db, id)
		var rows []api.Prediction
		for _, item := range order {
			other := prediction(item, "negative", 0.5)
			other.SchemaName = "other"
			rows = append(rows, prediction(item, "positive", 0.5), other)
		}
		if n, err := db.StorePredictions(t.Context(), id, each(rows...), anyLabel); err != nil || n != 12 {
			t.Fatalf("%v: stored %d, %v", order, n, err)
		}
		page, err := db.PredictionsPage(t.Context(), id, store.PredictionFilter{})
		must(t, err)
		for i, p := range page.Predictions {
			if p.InstanceID != rows[i].InstanceID || p.SchemaName != rows[i].SchemaName || (p.Correct != nil) != (p.SchemaName == "sentiment" && p.Split != api.SplitUnlabeled) {
				t.Errorf("%v: row %d is %+v", order, i, p)
			}
		}
		for code, row := range map[string]api.Prediction{"train_item": prediction("t1", "positive", 0.5), "duplicate_prediction": rows[0]} {
			_, err := db.StorePredictions(t.Context(), id, each(append(slices.Clone(rows), row)...), anyLabel)
			wantCode(t, err, code)
		}
	}
}

func TestPredictionsOfARunThatIsOverAreRefused(t *testing.T) {
	db := mustOpen(t)
	id := mustRun(t, db, api.RunEvaluating)
	mustItems(t, db, id)
	_, err := db.StorePredictions(t.Context(), id, each(prediction("v1", "positive", 0.9)), anyLabel)
	wantCode(t, err, "run_over")
}

func TestPredictionsPages(t *testing.T) {
	db := mustOpen(t)
	id := mustRun(t, db, api.RunRunning)
	mustItems(t, db, id)
	mustPredictions(t, db, id)
	must(t, db.MoveRun(t.Context(), id, api.RunRunning, api.RunEvaluating, store.RunUpdate{}))
	for _, tt := range []struct {
		f    store.PredictionFilter
		want []string
	}{
		{store.PredictionFilter{}, []string{"v1", "v2", "x1", "u1", "u2", "u3"}},
		{store.PredictionFilter{Limit: 4}, []string{"v1", "v2", "x1", "u1", "u2", "u3"}},
		{store.PredictionFilter{Split: "val"}, []string{"v1", "v2"}},
		{store.PredictionFilter{Split: "unlabeled", Limit: 1}, []string{"u1", "u2", "u3"}},
		{store.PredictionFilter{Wrong: true}, []string{"v2"}},
		{store.PredictionFilter{Label: "negative"}, []string{"u1"}},
		{store.PredictionFilter{Q: "FILM"}, []string{"v1", "v2"}},
		{store.PredictionFilter{Q: "100%"}, []string{"x1"}},
		{store.PredictionFilter{Q: "u2"}, []string{"u2"}},
		{store.PredictionFilter{Q: "film", Limit: 1}, []string{"v1", "v2"}},
		{store.PredictionFilter{Q: "e", Limit: 2}, []string{"v1", "x1", "u1", "u3"}},
		{store.PredictionFilter{Q: "e", Limit: 2, Label: "positive", Split: "val"}, []string{"v1"}},
		{store.PredictionFilter{Q: "nothing has this", Limit: 2}, nil},
		{store.PredictionFilter{Schema: "other"}, nil},
	} {
		var got []string
		for f := tt.f; ; {
			page, err := db.PredictionsPage(t.Context(), id, f)
			must(t, err)
			if page.Total != len(tt.want) {
				t.Errorf("%+v: got total %d, want %d", tt.f, page.Total, len(tt.want))
			}
			for _, p := range page.Predictions {
				got = append(got, p.InstanceID)
			}
			if f.Cursor = page.Next; page.Next == "" {
				break
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: got %v, want %v", tt.f, got, tt.want)
		}
		if tt.f.Limit > 0 {
			continue
		}
		var streamed []string
		must(t, db.StreamPredictions(t.Context(), id, tt.f, func(p api.PredictionRow) error {
			streamed = append(streamed, p.InstanceID)
			return nil
		}))
		if !slices.Equal(streamed, tt.want) {
			t.Errorf("streamed %+v: got %v, want %v", tt.f, streamed, tt.want)
		}
	}
	page, err := db.PredictionsPage(t.Context(), id, store.PredictionFilter{Split: "val"})
	must(t, err)
	v2 := page.Predictions[1]
	if v2.Correct == nil || *v2.Correct || !slices.Equal(v2.Target, []string{"negative"}) || v2.Text != "A dull film" || v2.Payload.Scores["positive"] != 0.6 {
		t.Errorf("got %+v", v2)
	}
	_, err = db.PredictionsPage(t.Context(), id, store.PredictionFilter{Cursor: "-1"})
	wantCode(t, err, "bad_cursor")
	stop := errors.New("stop")
	if err := db.StreamPredictions(t.Context(), id, store.PredictionFilter{}, func(api.PredictionRow) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v, want the error of emit", err)
	}
}

// TestMillionPredictionsStayFlat holds F3's memory: what the heap may grow by while a million rows go in is bounded.
func TestMillionPredictionsStayFlat(t *testing.T) {
	n := 1_000_000
	if raced {
		n /= 20
	}
	db := mustOpen(t)
	id := mustRun(t, db, api.RunBuilding)
	must(t, db.StoreRunItems(t.Context(), id, func(yield func(api.BundleItem, error) bool) {
		for i := range n {
			if !yield(api.BundleItem{InstanceID: fmt.Sprintf("item-%07d", i), Split: api.SplitUnlabeled, Text: "some text"}, nil) {
				return
			}
		}
	}))
	must(t, db.MoveRun(t.Context(), id, api.RunBuilding, api.RunRunning, store.RunUpdate{}))
	var before, during runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	start := time.Now()
	got, err := db.StorePredictions(t.Context(), id, func(yield func(api.Prediction, error) bool) {
		for i := range n {
			if i%(n/10) == 0 {
				runtime.GC()
				runtime.ReadMemStats(&during)
				peak = max(peak, during.HeapAlloc)
			}
			if !yield(prediction(fmt.Sprintf("item-%07d", i), "positive", math.Mod(float64(i)/float64(n), 1)), nil) {
				return
			}
		}
	}, anyLabel)
	must(t, err)
	grown := (int64(peak) - int64(before.HeapAlloc)) >> 20
	t.Logf("%d rows in %v, heap grew by %d MiB", got, time.Since(start), grown)
	if got != int64(n) || grown > 64 {
		t.Fatalf("got %d rows and %d MiB, want %d and at most 64", got, grown, n)
	}
	start = time.Now()
	page, err := db.PredictionsPage(t.Context(), id, store.PredictionFilter{Cursor: strconv.Itoa(n * 9 / 10)})
	must(t, err)
	if page.Total != n || len(page.Predictions) != 50 || time.Since(start) > time.Second {
		t.Errorf("late page: got %d of %d after %v", len(page.Predictions), page.Total, time.Since(start))
	}
}
