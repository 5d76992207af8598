package scores_test

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"potato/api"
	"potato/scores"
)

func all[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range list {
			if !yield(x, nil) {
				return
			}
		}
	}
}

func item(id, split, label string) api.BundleItem {
	return api.BundleItem{InstanceID: id, Split: split, Targets: map[string][]string{"mood": {label}}}
}

func guess(id, label string, p float64) api.Prediction {
	return api.Prediction{InstanceID: id, SchemaName: "mood", Payload: api.Payload{Label: label}, Confidence: &p}
}

func manifest(splits ...string) api.Manifest {
	m := api.Manifest{Schemas: []api.Scheme{{Name: "mood", Kind: api.KindNominal, Labels: []string{"good", "bad", "mixed"}}}, Splits: map[string]api.ManifestSplit{"train": {}}}
	for _, s := range splits {
		m.Splits[s] = api.ManifestSplit{}
	}
	return m
}

func score(tb testing.TB, m api.Manifest, items []api.BundleItem, predictions []api.Prediction) scores.Result {
	tb.Helper()
	r, err := scores.Score(m, all(items), all(predictions))
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

func TestScore(t *testing.T) {
	items := []api.BundleItem{item("a", "val", "good"), item("b", "val", "bad"), item("c", "val", "bad"), item("d", "test", "good"), item("e", "test", "bad")}
	r := score(t, manifest("dev", "test"), items, []api.Prediction{
		guess("e", "bad", 0.9), guess("a", "good", 0.8), guess("b", "bad", 0.6), guess("b", "good", 0.6), // twice: the first counts
		guess("c", "good", 0.6), guess("d", "old", 0.5), guess("unlabelled", "good", 1), guess("trained on", "good", 1),
		{InstanceID: "a", SchemaName: "other", Payload: api.Payload{Label: "x"}},
	})
	val := r.Schemas[0].Val
	if val.N != 3 || *val.Accuracy != 2.0/3 {
		t.Errorf("val %+v", val)
	}
	want := &api.Confusion{Labels: []string{"good", "bad"}, Counts: [][]int{{1, 0}, {1, 1}}}
	if !reflect.DeepEqual(val.Confusion, want) {
		t.Errorf("confusion %+v, want %+v", val.Confusion, want)
	}
	// |0.8-1| x 1/3 + |0.6-0.5| x 2/3
	if want := 0.2/3 + 0.1*2/3; math.Abs(*val.ECE-want) > 1e-12 || len(val.Reliability) != 2 {
		t.Errorf("ECE %v, want %v; bins %+v", *val.ECE, want, val.Reliability)
	}
	if b := val.Reliability[0]; b.N != 2 || b.Accuracy != 0.5 || b.Lower != 8.0/15 || b.Upper != 9.0/15 {
		t.Errorf("bin %+v", b)
	}
	test := r.Schemas[0].Test
	var labels []string
	for _, l := range test.Labels {
		labels = append(labels, l.Label)
	}
	if !slices.Equal(labels, []string{"good", "bad", "old"}) || *test.Accuracy != 0.5 || *test.MacroF1 != 1.0/3 {
		t.Errorf("test %+v, labels %v", test, labels)
	}
	if good := test.Labels[0]; good.Precision != nil || *good.Recall != 0 || *good.F1 != 0 || good.Support != 1 {
		t.Errorf("a label that was never predicted: %+v", good)
	}
	if got := slices.Sorted(mapKeys(r.Metrics)); !slices.Equal(got, []string{"test_accuracy", "test_ece", "test_macro_f1", "val_accuracy", "val_ece", "val_macro_f1"}) || *r.Metrics["val_accuracy"] != 2.0/3 {
		t.Errorf("metrics %v", got)
	}
	if len(r.Warnings) != 0 || r.Schemas[0].Train == nil {
		t.Errorf("warnings %q", r.Warnings)
	}
}

func mapKeys(m api.Metrics) iter.Seq[string] {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// R4: where a number would mean nothing, words stand in its place.
func TestNoNumber(t *testing.T) {
	two := []api.BundleItem{item("a", "val", "good"), item("b", "val", "bad")}
	bare := func(id, label string) api.Prediction {
		return api.Prediction{InstanceID: id, SchemaName: "mood", Payload: api.Payload{Label: label}}
	}
	cases := []struct {
		name        string
		splits      []string
		items       []api.BundleItem
		predictions []api.Prediction
		null        []string
		given       []string
		says        []string
	}{
		{"an empty split", []string{"val", "test"}, two, []api.Prediction{guess("a", "good", 1), guess("b", "good", 1)},
			[]string{"test_accuracy", "test_macro_f1", "test_ece"}, []string{"val_accuracy", "val_ece"}, []string{"test split is empty"}},
		{"a split of one class", []string{"val"}, []api.BundleItem{item("a", "val", "good"), item("b", "val", "good")}, []api.Prediction{guess("a", "good", 1), guess("b", "bad", 1)},
			[]string{"val_accuracy", "val_macro_f1", "val_ece"}, nil, []string{"All 2 items", "(good)", "no test split"}},
		{"no probabilities", []string{"val"}, two, []api.Prediction{bare("a", "good"), bare("b", "good")},
			[]string{"val_ece"}, []string{"val_accuracy", "val_macro_f1"}, []string{"no probabilities"}},
		{"some probabilities", []string{"val"}, two, []api.Prediction{bare("a", "good"), guess("b", "good", 1)},
			[]string{"val_ece"}, []string{"val_accuracy"}, []string{"1 of 2 predictions"}},
		{"no predictions", []string{"val"}, two, nil,
			[]string{"val_accuracy", "val_macro_f1"}, nil, []string{"None of the 2 items"}},
		{"an item without prediction", []string{"val"}, append(two, item("c", "val", "bad")), []api.Prediction{guess("a", "good", 1), guess("b", "bad", 1)},
			nil, []string{"val_accuracy", "val_ece"}, []string{"1 of the 3 items"}},
		{"nothing held out", nil, nil, nil,
			[]string{"val_accuracy", "test_accuracy"}, nil, []string{"no val split", "no test split"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := score(t, manifest(c.splits...), c.items, c.predictions)
			for _, name := range c.null {
				if f, there := r.Metrics[name]; !there || f != nil {
					t.Errorf("%s is %v, want it there and null", name, show(f))
				}
			}
			for _, name := range c.given {
				if r.Metrics[name] == nil {
					t.Errorf("%s is null", name)
				}
			}
			for _, text := range c.says {
				if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, text) }) {
					t.Errorf("no warning says %q: %q", text, r.Warnings)
				}
			}
		})
	}
}

func TestSeveralSchemes(t *testing.T) {
	m := manifest("val", "test")
	m.Schemas = append(m.Schemas, api.Scheme{Name: "topics", Kind: api.KindMultilabel, Labels: []string{"food", "art"}}, api.Scheme{Name: "quality", Kind: api.KindOrdinal, Labels: []string{"low", "mid", "high"}})
	a := api.BundleItem{InstanceID: "a", Split: "val", Targets: map[string][]string{"mood": {"good"}, "topics": {"food"}, "quality": {"high"}}}
	b := api.BundleItem{InstanceID: "b", Split: "val", Targets: map[string][]string{"topics": {"art", "food"}, "quality": {"low"}}}
	several := func(id string, labels []string, food, art float64) api.Prediction {
		return api.Prediction{InstanceID: id, SchemaName: "topics", Payload: api.Payload{Labels: labels, Scores: map[string]float64{"food": food, "art": art}}}
	}
	word := func(id, label string) api.Prediction {
		return api.Prediction{InstanceID: id, SchemaName: "quality", Payload: api.Payload{Label: label}}
	}
	r := score(t, m, []api.BundleItem{a, b}, []api.Prediction{several("a", []string{"food"}, 0.9, 0.2), several("b", []string{"food"}, 0.9, 0.4), word("a", "high"), word("b", "high"), guess("a", "good", 1), guess("b", "good", 1)})
	topics := r.Schemas[1].Val
	if *topics.Accuracy != 0.5 || *topics.MicroF1 != 0.8 || *topics.MacroF1 != 0.5 || topics.Confusion != nil {
		t.Errorf("topics %+v", topics)
	}
	// Four decisions: food in, twice at 0.9 and right; art out at 0.8 and right, out at 0.6 and wrong.
	if want := 0.5*0.1 + 0.25*0.2 + 0.25*0.6; math.Abs(*topics.ECE-want) > 1e-12 {
		t.Errorf("ECE of label decisions %v, want %v", *topics.ECE, want)
	}
	if q := r.Schemas[2].Val; *q.MAE != 1 {
		t.Errorf("a scale in words: MAE %v, want 1", *q.MAE)
	}
	if r.Schemas[0].Val.N != 1 {
		t.Errorf("an item without a target for mood was scored: %+v", r.Schemas[0].Val)
	}
	if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, "topics: ") }) {
		t.Errorf("warnings do not name the scheme: %q", r.Warnings)
	}
	if _, there := r.BySchema["quality"]["test_mae"]; !there {
		t.Errorf("metrics of quality: %v", r.BySchema["quality"])
	}
}

func TestManyClasses(t *testing.T) {
	m := manifest("val")
	var items []api.BundleItem
	var predictions []api.Prediction
	for i := range 1000 {
		label := fmt.Sprint("class ", i%500)
		items = append(items, item(fmt.Sprint(i), "val", label))
		predictions = append(predictions, guess(fmt.Sprint(i), label, 0.5))
	}
	val := score(t, m, items, predictions).Schemas[0].Val
	if len(val.Labels) != 500 || *val.Accuracy != 1 || *val.MacroF1 != 1 || val.Confusion != nil || len(val.Warnings) != 1 {
		t.Errorf("%d labels, confusion %v, warnings %q", len(val.Labels), val.Confusion != nil, val.Warnings)
	}
}

func TestReadErrorsComeThrough(t *testing.T) {
	broken := errors.New("disk")
	if _, err := scores.Score(manifest("val"), func(yield func(api.BundleItem, error) bool) { yield(api.BundleItem{}, broken) }, all[api.Prediction](nil)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if _, err := scores.Score(manifest("val"), all[api.BundleItem](nil), func(yield func(api.Prediction, error) bool) { yield(api.Prediction{}, broken) }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// F3: a million predictions, three hundred thousand of them for held-out items.
func BenchmarkScore(b *testing.B) {
	labels := []string{"good", "bad", "mixed"}
	items := func(yield func(api.BundleItem, error) bool) {
		for i := range 300_000 {
			if !yield(item(fmt.Sprintf("item-%07d", i), []string{"val", "test"}[i%2], labels[i%3]), nil) {
				return
			}
		}
	}
	predictions := func(yield func(api.Prediction, error) bool) {
		for i := range 1_000_000 {
			if !yield(guess(fmt.Sprintf("item-%07d", i), labels[i%7%3], float64(i%100)/100), nil) {
				return
			}
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := scores.Score(manifest("val", "test"), items, predictions); err != nil {
			b.Fatal(err)
		}
	}
}
