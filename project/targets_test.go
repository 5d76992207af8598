package project_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"potato/api"
	"potato/project"
)

func options(schemes ...string) project.BundleOptions { return project.BundleOptions{Schemas: schemes} }

const topicsScheme = "- {annotation_type: multiselect, name: topics, description: d, labels: [travel, food, art]}\n"

func many(labels ...string) string {
	var pairs []string
	for _, l := range labels {
		pairs = append(pairs, radio("topics", l))
	}
	return strings.Join(pairs, ", ")
}

func TestMajority(t *testing.T) {
	f := fiveItems(t, moodScheme+topicsScheme)
	f.train = "aggregation: majority, splits: {train: 1}"
	f.label("ann", map[string]string{"a": radio("mood", "bad") + "," + many("food"), "b": radio("mood", "good"), "c": many("travel", "food"), "d": many("travel"), "e": many("food")})
	f.label("bob", map[string]string{"a": radio("mood", "good") + "," + many("food", "art"), "b": radio("mood", "bad"), "c": many("food", "art"), "d": many("food"), "e": many("art")})
	f.label("cyd", map[string]string{"a": radio("mood", "good") + "," + many("art"), "c": many("travel", "art"), "d": many("art")})
	s := f.open()
	// On b the two disagree: the first annotator counts.
	f.wants(s, map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "good"}`}, "mood")
	// Label by label: two of three chose each of c's labels. On d nobody agrees and on e they are two: the first counts.
	f.wants(s, map[string]string{"a": `{"topics": ["food", "art"]}`, "c": `{"topics": ["travel", "food", "art"]}`, "d": `{"topics": ["travel"]}`, "e": `{"topics": ["food"]}`}, "topics")
}

// One annotator who is always wrong must not decide: consensus learns whom to trust where a majority cannot.
func TestConsensusLearnsWhomToTrust(t *testing.T) {
	f := newFolder(t, moodScheme+topicsScheme)
	f.train = "splits: {train: 1}"
	var items []string
	votes := map[string]map[string]string{"a_noise": {}, "b_good": {}, "c_good": {}}
	for i := range 60 {
		id := fmt.Sprintf("i%02d", i)
		items = append(items, fmt.Sprintf(`{"id":%q,"text":"x"}`, id))
		truth, noise := []string{"good", "bad"}[i%2], []string{"good", "bad"}[i/2%2]
		topic, noiseTopic := []string{"travel", "food"}[i%2], []string{"travel", "food"}[i/2%2]
		votes["a_noise"][id] = radio("mood", noise) + "," + many(noiseTopic)
		votes["b_good"][id] = radio("mood", truth) + "," + many(topic)
		if i < 50 {
			votes["c_good"][id] = radio("mood", truth) + "," + many(topic)
		}
	}
	f.write("items.json", "["+strings.Join(items, ",")+"]")
	for user, answers := range votes {
		f.label(user, answers)
	}
	s := f.open()
	for scheme, want := range map[string][]string{"mood": {`{"mood": "good"}`, `{"mood": "bad"}`}, "topics": {`{"topics": ["travel"]}`, `{"topics": ["food"]}`}} {
		wrong := 0
		got := targets(t, f.bundle(s, options(scheme)))
		for i := range 60 {
			if got[fmt.Sprintf("i%02d", i)] != want[i%2] {
				wrong++
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d of 60 items follow the one who answers by chance", scheme, wrong)
		}
	}
}

func TestAgreement(t *testing.T) {
	f := fiveItems(t, moodScheme)
	f.label("ann", map[string]string{"a": radio("mood", "good"), "b": radio("mood", "bad"), "c": radio("mood", "good"), "d": radio("mood", "bad")})
	s := f.open()
	ready := readiness(t, s, "mood")
	if ready.Agreement != nil {
		t.Errorf("agreement %v of one annotator, want null", *ready.Agreement)
	}
	// Krippendorff (2011), nominal data: here the coincidences are good/good 2, bad/bad 2, good/bad 2 of 6.
	f.label("bob", map[string]string{"a": radio("mood", "good"), "b": radio("mood", "bad"), "c": radio("mood", "bad")})
	ready = readiness(t, s, "mood")
	if want := 1 - (2.0/6)/(18.0/30); ready.Agreement == nil || math.Abs(*ready.Agreement-want) > 1e-12 {
		t.Errorf("agreement %v, want %v", ready.Agreement, want)
	}
	if ready.NAnnotators != 2 || ready.NLabeled != 4 || ready.NUnlabeled != 1 || ready.NAgreed != 3 {
		t.Errorf("%+v", ready)
	}
}

func readiness(tb testing.TB, s *project.Study, scheme string) project.Readiness {
	tb.Helper()
	ready, err := s.Readiness(context.Background(), scheme)
	if err != nil || len(ready) != 1 {
		tb.Fatalf("readiness of %s: %v, %v", scheme, ready, err)
	}
	return ready[0]
}

// T50 and T51: what cannot be trained is said at once, in a sentence with the counts.
func TestNothingToTrain(t *testing.T) {
	own := `[{"schema": "mood", "name": "free_response"}, "well"]`
	cases := []struct {
		name   string
		items  string
		train  string
		labels map[string]map[string]string
		says   []string
	}{
		{"no items", `[]`, "", nil, []string{"no items"}},
		{"other ids", `[{"id":"1","text":"A"},{"id":"2","text":"B"}]`, "", map[string]map[string]string{"ann": {"a": radio("mood", "good"), "b": radio("mood", "bad")}}, []string{"2 items in the data files", "2 items with other ids"}},
		{"zero labels", "", "", nil, []string{"Nobody has answered", "0 of 5"}},
		{"all labels empty", "", "", map[string]map[string]string{"ann": {"a": own, "b": own}}, []string{"2 of 5", "none of the answers"}},
		{"all annotators disagree", "", "", map[string]map[string]string{"ann": {"a": radio("mood", "good"), "b": radio("mood", "bad")}, "bob": {"a": radio("mood", "bad"), "b": radio("mood", "mixed")}}, []string{"disagree", "2 of 5"}},
		{"a single class", "", "", map[string]map[string]string{"ann": {"a": radio("mood", "good"), "b": radio("mood", "good")}}, []string{"All 2", "good", "two different"}},
		{"a class only in held-out", "", "split_seed: 16, splits: {train: 0.5, test: 0.5}", map[string]map[string]string{"ann": {"a": radio("mood", "good"), "b": radio("mood", "bad"), "c": radio("mood", "bad"), "d": radio("mood", "bad"), "e": radio("mood", "bad")}}, []string{"training items", "bad", "5 items are labelled"}},
		{"nothing in the training split", "", "splits: {train: 0.000001, test: 1}", map[string]map[string]string{"ann": {"a": radio("mood", "good"), "b": radio("mood", "bad")}}, []string{"None of the 2", "training split"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := fiveItems(t, moodScheme)
			if c.items != "" {
				f.write("items.json", c.items)
			}
			if c.train != "" {
				f.train = c.train
			}
			for user, answers := range c.labels {
				f.label(user, answers)
			}
			s := f.open()
			ready := readiness(t, s, "mood")
			if ready.Trainable || ready.Reason == "" {
				t.Fatalf("%+v", ready)
			}
			err := s.CheckTrainable(context.Background(), []string{"mood"})
			refused(t, err, "nothing_to_train", append(c.says, ready.Reason)...)
			if hint := api.AsError(err).Hint; strings.Contains(hint, "label more") == (c.name == "no items" || c.name == "other ids") {
				t.Errorf("hint %q", hint)
			}
			if p := api.AsError(err).Problems; len(p) != 1 || p[0].Path != "body.schemas[0]" {
				t.Errorf("problems %+v", p)
			}
		})
	}
}

func TestTrainableSchemes(t *testing.T) {
	f := fiveItems(t, moodScheme+"- {annotation_type: text, name: note, description: d}\n"+topicsScheme)
	f.label("ann", map[string]string{"a": radio("mood", "good") + "," + many("food"), "b": radio("mood", "bad") + "," + many("food", "art"), "c": radio("mood", "good")})
	s := f.open()
	ctx := context.Background()
	if err := s.CheckTrainable(ctx, []string{"mood", "topics"}); err != nil {
		t.Error(err)
	}
	refused(t, s.CheckTrainable(ctx, []string{"moot"}), "bad_schemas", `"moot"`)
	if p := api.AsError(s.CheckTrainable(ctx, []string{"topics", "moot"})).Problems; len(p) != 1 || p[0].Suggestion != "mood" || p[0].Path != "body.schemas[1]" {
		t.Errorf("problems %+v", p)
	}
	refused(t, s.CheckTrainable(ctx, []string{"note"}), "bad_schemas", "note", "text")
	refused(t, s.CheckTrainable(ctx, []string{"mood", "mood"}), "bad_schemas", "twice")

	ready, err := s.Readiness(ctx)
	if err != nil || len(ready) != 3 {
		t.Fatalf("%v, %v", ready, err)
	}
	want := []api.LabelCount{{Label: "food", N: 2}, {Label: "art", N: 1}}
	if got := ready[2]; got.Name != "topics" || !reflect.DeepEqual(got.LabelCounts, want) || got.NLabeled != 2 || got.NUnlabeled != 3 || !got.Trainable || got.Description != "d" {
		t.Errorf("topics: %+v", got)
	}
	if got := ready[1]; got.Trainable || !strings.Contains(got.Reason, "note") || got.LabelCounts == nil || got.Trainers == nil {
		t.Errorf("note: %+v", got)
	}
	// The next answer is seen.
	f.label("bob", map[string]string{"d": radio("mood", "good")})
	if got := readiness(t, s, "mood"); got.NLabeled != 4 || got.NAnnotators != 2 {
		t.Errorf("after another answer: %+v", got)
	}
}

// A class with one example, two rows in all, 500 classes: a bundle like any other (T50).
func TestOddClasses(t *testing.T) {
	f := fiveItems(t, "- {annotation_type: radio, name: mood, description: d, labels: [good, bad]}\n")
	f.label("ann", map[string]string{"a": radio("mood", "good"), "b": radio("mood", "bad")})
	f.wants(f.open(), map[string]string{"a": `{"mood": "good"}`, "b": `{"mood": "bad"}`}, "mood")

	g := newFolder(t, "- {annotation_type: radio, name: mood, description: d, labels: [good, bad]}\n")
	var items []string
	ann, bob := map[string]string{}, map[string]string{}
	for i := range 2000 {
		id := fmt.Sprint(i)
		items = append(items, fmt.Sprintf(`{"id":%q,"text":"x"}`, id))
		ann[id] = radio("mood", fmt.Sprint("class ", i%500))
		bob[id] = radio("mood", fmt.Sprint("class ", (i+i%3/2)%500))
	}
	g.write("items.json", "["+strings.Join(items, ",")+"]")
	g.label("ann", ann)
	g.label("bob", bob)
	b := g.bundle(g.open(), options("mood"))
	if got := len(b.Manifest.Labels["mood"]); got != 500 {
		t.Errorf("%d labels, want 500", got)
	}
}
