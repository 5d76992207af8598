package project_test

import (
	"maps"
	"testing"

	"potato/api"
)

// What is stored for each type of scheme, and the class that it is (PEER.md §2.3 and §12, 2 and 7).
func TestAnswers(t *testing.T) {
	const (
		radioYes  = "- {annotation_type: radio, name: s, description: d, has_free_response: true, labels: [\"yes\", \"no\", \"false\"]}\n"
		selectOne = "- {annotation_type: select, name: s, description: d, labels: [en, fr, select-one, \"1\"]}\n"
		several   = "- {annotation_type: multiselect, name: s, description: d, labels: [travel, food, \"a|b\"]}\n"
		one       = "- {annotation_type: multiselect, name: s, description: d, max_choices: 1, labels: [travel, food]}\n"
		free      = "- {annotation_type: radio, name: s, description: d, labels: [free_response, other]}\n"
		likert    = "- {annotation_type: likert, name: s, description: d, size: 5, min_label: a, max_label: b}\n"
		worded    = "- {annotation_type: likert, name: s, description: d, labels: [low, mid, high]}\n"
		trust     = "- {annotation_type: confidence, name: s, description: d}\n"
		pairwise  = "- {annotation_type: pairwise, name: s, description: d, labels: [First, Second]}\n"
		conjoint  = "- {annotation_type: conjoint, name: s, description: d, attributes: [{name: p, levels: [x, y]}]}\n"
		triage    = "- {annotation_type: triage, name: s, description: d}\n"
		tree      = "- {annotation_type: hierarchical_multiselect, name: s, description: d, taxonomy: {A: [b, c]}}\n"
	)
	pair := func(name, value string) string { return `[{"schema": "s", "name": "` + name + `"}, ` + value + `]` }
	cases := []struct{ name, scheme, stored, want string }{
		{"radio, label as value", radioYes, pair("yes", `"yes"`), `"yes"`},
		{"radio, true", radioYes, pair("yes", `true`), `"yes"`},
		{"radio, the word true", radioYes, pair("yes", `"true"`), `"yes"`},
		{"radio, 1", radioYes, pair("yes", `1`), `"yes"`},
		{"radio, unset", radioYes, pair("yes", `false`) + "," + pair("no", `"no"`), `"no"`},
		{"radio, unset by a word", radioYes, pair("yes", `"false"`) + "," + pair("no", `"no"`), `"no"`},
		{"radio, a label that is called false", radioYes, pair("false", `"false"`), `"false"`},
		{"radio, own words", radioYes, pair("free_response", `"well"`), ""},
		{"radio, own words beside a label", radioYes, pair("no", `"no"`) + "," + pair("free_response", `"well"`), `"no"`},
		{"radio, two labels", radioYes, pair("no", `"no"`) + "," + pair("yes", `"yes"`), ""},
		{"radio, nothing", radioYes, pair("no", `""`), ""},
		{"radio, a label that the config has lost", radioYes, pair("maybe", `"maybe"`), `"maybe"`},
		{"a label that is called free_response", free, pair("free_response", `"free_response"`), `"free_response"`},
		{"select", selectOne, pair("select-one", `"fr"`), `"fr"`},
		{"select, a label that is the key", selectOne, pair("select-one", `"select-one"`), `"select-one"`},
		{"select, an API client's true", selectOne, pair("fr", `true`), `"fr"`},
		{"select, an API client's word true", selectOne, pair("fr", `"true"`), `"fr"`},
		{"select, a label that is a number", selectOne, pair("select-one", `1`), `"1"`},
		{"select, unset", selectOne, pair("select-one", `""`), ""},
		{"multiselect", several, pair("food", `"food"`) + "," + pair("travel", `"travel"`), `["travel", "food"]`},
		{"multiselect, a bar in a label", several, pair("a|b", `true`), `["a|b"]`},
		{"multiselect, own words", several, pair("food", `"food"`) + "," + pair("free_response", `"hiking"`), `["food"]`},
		{"multiselect, own words only", several, pair("free_response", `"hiking"`), ""},
		{"multiselect, unticked", several, pair("food", `false`), ""},
		{"multiselect of one", one, pair("food", `"food"`), `"food"`},
		{"likert", likert, pair("4", `"4"`), `4`},
		{"likert, true", likert, pair("4", `true`), `4`},
		{"likert, as a float", likert, pair("4.0", `4.0`), `4`},
		{"likert, a point beyond the scale", likert, pair("7", `"7"`), `7`},
		{"likert in words", worded, pair("mid", `"mid"`), `"mid"`},
		{"confidence", trust, pair("2", `"2"`), `2`},
		{"pairwise", pairwise, pair("selection", `"A"`), `"A"`},
		{"pairwise, tie", pairwise, pair("selection", `"tie"`), `"tie"`},
		{"conjoint", conjoint, pair("s", `"2"`), `"2"`},
		{"triage", triage, pair("decision", `"accept"`), `"accept"`},
		{"tree, JSON in a text", tree, pair("selected_labels", `"[\"c\", \"A\"]"`), `["A", "c"]`},
		{"tree, words between commas", tree, pair("selected_labels", `"A,b"`), `["A", "b"]`},
		{"tree, a list", tree, pair("selected_labels", `["b"]`), `["b"]`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := fiveItems(t, c.scheme)
			// Another item carries the bundle when this one has no class.
			f.label("ann", map[string]string{"a": c.stored})
			f.write("out/adjudication/decisions.json", `{"decisions": [{"instance_id": "e", "label_decisions": {"s": "1"}}]}`)
			b := f.bundle(f.open(), options("s"))
			got := targets(t, b)
			delete(got, "e")
			want := map[string]string{"a": `{"s": ` + c.want + `}`}
			if c.want == "" {
				want = map[string]string{}
			}
			if !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// Different ways of writing an answer are the same vote (PEER.md §12, 7).
func TestVotesCompareByMeaning(t *testing.T) {
	f := fiveItems(t, moodScheme)
	f.train = "aggregation: majority, splits: {train: 1}"
	f.label("ann", map[string]string{"a": radio("mood", "bad")})
	f.label("bob", map[string]string{"a": `[{"schema": "mood", "name": "good"}, true]`})
	f.label("cyd", map[string]string{"a": `[{"schema": "mood", "name": "good"}, "true"]`})
	f.wants(f.open(), map[string]string{"a": `{"mood": "good"}`}, "mood")
}

func TestKinds(t *testing.T) {
	f := fiveItems(t, `- {annotation_type: radio, name: radio, description: d, labels: [x, y]}
- {annotation_type: multiselect, name: several, description: d, labels: [x, y]}
- {annotation_type: multiselect, name: one, description: d, labels: [x, y], max_choices: 1}
- {annotation_type: likert, name: likert, description: d, size: 3, min_label: a, max_label: b}
- {annotation_type: slider, name: slider, description: d, min_value: 0, max_value: 9, starting_value: 1}
- {annotation_type: text, name: text, description: d}
- {annotation_type: span, name: span, description: d, labels: [x, y]}
- {annotation_type: pairwise, name: binary, description: d, labels: [x, y]}
- {annotation_type: pairwise, name: scale, description: d, mode: scale, labels: [x, y]}
- {annotation_type: pairwise, name: dimensions, description: d, mode: multi_dimension, labels: [x, y]}
- {annotation_type: card_sort, name: cards, description: d, groups: [x, y]}
- {annotation_type: image_annotation, name: image, description: d, labels: [x, y]}
- {annotation_type: audio_annotation, name: audio, description: d, labels: [x, y]}
`)
	want := map[string]api.SchemeKind{
		"radio": api.KindNominal, "several": api.KindMultilabel, "one": api.KindNominal, "likert": api.KindOrdinal, "slider": api.KindContinuous,
		"text": api.KindUnsupported, "span": api.KindSpan, "binary": api.KindNominal, "scale": api.KindContinuous, "dimensions": api.KindMatrix,
		"cards": api.KindMatrix, "image": api.KindGeometry, "audio": api.KindTemporal,
	}
	got := map[string]api.SchemeKind{}
	for _, s := range f.config().Schemes() {
		got[s.Name] = s.Kind
		if s.Labels == nil {
			t.Errorf("%s has null labels", s.Name)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
