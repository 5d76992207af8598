package scores_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"potato/api"
	"potato/scores"
)

var update = flag.Bool("update", false, "write testdata/sklearn.json with the interpreter that POTATO_TEST_PYTHON names")

// testCase is what scikit-learn gets to see: labels and probabilities, nothing of ours.
type testCase struct {
	Kind        api.SchemeKind `json:"kind"`
	Truth       []any          `json:"truth"`
	Guess       []any          `json:"guess"`
	Probability []float64      `json:"probability"`
}

type expected struct {
	Accuracy, MacroF1, MicroF1, ECE, MAE, QuadraticKappa *float64
	Labels                                               map[string][4]float64
}

func (e *expected) UnmarshalJSON(b []byte) error {
	var x struct {
		Accuracy       *float64              `json:"accuracy"`
		MacroF1        *float64              `json:"macro_f1"`
		MicroF1        *float64              `json:"micro_f1"`
		ECE            *float64              `json:"ece"`
		MAE            *float64              `json:"mae"`
		QuadraticKappa *float64              `json:"quadratic_kappa"`
		Labels         map[string][4]float64 `json:"labels"`
	}
	err := json.Unmarshal(b, &x)
	*e = expected(x)
	return err
}

// cases are drawn from a seeded source: twenty of each kind, small and large, balanced and not.
func cases() []testCase {
	r := rand.New(rand.NewPCG(1, 2))
	names := map[api.SchemeKind][]string{
		api.KindNominal: {"good", "bad", "mixed", "é=cmd()", "a|b"}, api.KindOrdinal: {"1", "2", "3", "4", "5"}, api.KindMultilabel: {"travel", "food", "art", "a|b"},
	}
	var out []testCase
	for _, kind := range []api.SchemeKind{api.KindNominal, api.KindOrdinal, api.KindMultilabel} {
		for size := range 20 {
			c := testCase{Kind: kind}
			labels := names[kind][:2+size%(len(names[kind])-1)]
			skill := r.Float64()
			for i := range 3 + size*size {
				truth := draw(r, kind, labels)
				if i < 2 { // never one class alone
					truth = fixed(kind, labels[i])
				}
				guess := truth
				if r.Float64() > skill {
					guess = draw(r, kind, names[kind]) // labels that truth has not
				}
				c.Truth, c.Guess = append(c.Truth, truth), append(c.Guess, guess)
				p := math.Round(r.Float64()*30) / 30 // often just on an edge of a bin
				if size%2 == 0 {
					p = r.Float64()
				}
				c.Probability = append(c.Probability, p)
			}
			out = append(out, c)
		}
	}
	return out
}

func fixed(kind api.SchemeKind, label string) any {
	if kind == api.KindMultilabel {
		return []string{label}
	}
	return label
}

func draw(r *rand.Rand, kind api.SchemeKind, labels []string) any {
	if kind != api.KindMultilabel {
		return labels[int(float64(len(labels))*r.Float64()*r.Float64())]
	}
	set := []string{}
	for _, l := range labels {
		if r.Float64() < 0.4 {
			set = append(set, l)
		}
	}
	return set
}

// ours scores a case.
func ours(t *testing.T, c testCase) *api.SplitScores {
	t.Helper()
	m := api.Manifest{Schemas: []api.Scheme{{Name: "s", Kind: c.Kind}}, Splits: map[string]api.ManifestSplit{"val": {}}}
	if c.Kind == api.KindOrdinal {
		m.Schemas[0].Labels = []string{"1", "2", "3", "4", "5"}
	}
	var items []api.BundleItem
	var predictions []api.Prediction
	for i := range c.Truth {
		id := fmt.Sprint(i)
		p := api.Prediction{InstanceID: id, SchemaName: "s", Payload: api.Payload{Confidence: &c.Probability[i]}}
		var target []string
		if c.Kind == api.KindMultilabel {
			target, p.Payload.Labels = c.Truth[i].([]string), c.Guess[i].([]string)
		} else {
			target, p.Payload.Label = []string{c.Truth[i].(string)}, c.Guess[i].(string)
		}
		items = append(items, api.BundleItem{InstanceID: id, Split: "val", Targets: map[string][]string{"s": target}})
		predictions = append(predictions, p)
	}
	r, err := scores.Score(m, all(items), all(predictions))
	if err != nil {
		t.Fatal(err)
	}
	return r.Schemas[0].Val
}

// The table was computed by scikit-learn (R4: the figures are those that anyone computes).
func TestScoresAreSklearns(t *testing.T) {
	text, err := os.ReadFile("testdata/sklearn.json")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, text)
}

// The same against the scikit-learn that is installed, so that the table cannot grow old unnoticed.
func TestScoresAgainstSklearn(t *testing.T) {
	python := os.Getenv("POTATO_TEST_PYTHON")
	if python == "" {
		if os.Getenv("CI") == "true" {
			t.Fatal("POTATO_TEST_PYTHON must name an interpreter with scikit-learn")
		}
		t.Skip("POTATO_TEST_PYTHON names no interpreter with scikit-learn")
	}
	in, err := json.Marshal(cases())
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(python, "testdata/sklearn_scores.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/sklearn.json", out, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	compare(t, out)
}

func compare(t *testing.T, text []byte) {
	t.Helper()
	var want []expected
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	all := cases()
	if len(want) != len(all) {
		t.Fatalf("%d expected scores for %d cases; run with -update", len(want), len(all))
	}
	for i, c := range all {
		got := ours(t, c)
		name := fmt.Sprintf("case %d (%s, %d items)", i, c.Kind, len(c.Truth))
		near(t, name+" accuracy", got.Accuracy, want[i].Accuracy)
		near(t, name+" macro F1", got.MacroF1, want[i].MacroF1)
		near(t, name+" micro F1", got.MicroF1, want[i].MicroF1)
		near(t, name+" ECE", got.ECE, want[i].ECE)
		near(t, name+" MAE", got.MAE, want[i].MAE)
		near(t, name+" kappa", got.QuadraticKappa, want[i].QuadraticKappa)
		if len(got.Labels) != len(want[i].Labels) {
			t.Errorf("%s: %d labels, want %d", name, len(got.Labels), len(want[i].Labels))
		}
		for _, l := range got.Labels {
			w := want[i].Labels[l.Label]
			for j, f := range []*float64{l.Precision, l.Recall, l.F1} {
				if f == nil { // scikit-learn says 0 where it divides by nought
					f = new(float64)
				}
				near(t, fmt.Sprintf("%s label %s figure %d", name, l.Label, j), f, &w[j])
			}
			if float64(l.Support) != w[3] {
				t.Errorf("%s label %s: support %d, want %v", name, l.Label, l.Support, w[3])
			}
		}
	}
}

func near(t *testing.T, name string, got, want *float64) {
	t.Helper()
	switch {
	case got == nil && want == nil:
	case got == nil || want == nil:
		t.Errorf("%s: got %v, want %v", name, show(got), show(want))
	case math.Abs(*got-*want) > 1e-9:
		t.Errorf("%s: got %v, want %v", name, *got, *want)
	}
}

func show(f *float64) string {
	if f == nil {
		return "null"
	}
	return fmt.Sprint(*f)
}
