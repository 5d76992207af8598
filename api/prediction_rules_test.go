package api_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"potato/api"
)

func rules() *api.PredictionRules {
	return api.NewPredictionRules(api.Manifest{
		Schemas: []api.Scheme{
			{Name: "mood", Kind: api.KindNominal, Labels: []string{"happy", "sad"}},
			{Name: "topics", Kind: api.KindMultilabel, Labels: []string{"food", "travel"}},
			{Name: "quality", Kind: api.KindOrdinal, Labels: []string{"1", "2", "3"}},
		},
		Labels: map[string][]string{"mood": {"happy", "grumpy"}},
	})
}

func number(f float64) *float64 { return &f }

// P9: what is no probability and what is no label must not be published.
func TestPredictionRules(t *testing.T) {
	cases := []struct {
		name   string
		p      api.Prediction
		labels []string
		code   string
	}{
		{"configured label", api.Prediction{SchemaName: "mood", Payload: api.Payload{Label: "sad"}}, []string{"sad"}, ""},
		{"observed label", api.Prediction{SchemaName: "mood", Payload: api.Payload{Label: "grumpy"}}, []string{"grumpy"}, ""},
		{"ordinal", api.Prediction{SchemaName: "quality", Payload: api.Payload{Label: "3"}}, []string{"3"}, ""},
		{"several labels", api.Prediction{SchemaName: "topics", Payload: api.Payload{Labels: []string{"food", "travel"}}}, []string{"food", "travel"}, ""},
		{"none of the labels", api.Prediction{SchemaName: "topics", Payload: api.Payload{Labels: []string{}}}, []string{}, ""},
		{"confidence at the ends", api.Prediction{SchemaName: "mood", Confidence: number(1), Payload: api.Payload{Label: "sad", Scores: map[string]float64{"sad": 1, "happy": 0}}}, []string{"sad"}, ""},
		{"unknown scheme", api.Prediction{SchemaName: "colour", Payload: api.Payload{Label: "sad"}}, nil, "unknown_scheme"},
		{"no label", api.Prediction{SchemaName: "mood"}, nil, "missing_label"},
		{"a label for a multi-label scheme", api.Prediction{SchemaName: "topics", Payload: api.Payload{Label: "food|travel"}}, nil, "missing_label"},
		{"unknown label", api.Prediction{SchemaName: "mood", Payload: api.Payload{Label: "angry"}}, nil, "unknown_label"},
		{"unknown label in the list", api.Prediction{SchemaName: "topics", Payload: api.Payload{Labels: []string{"food", "free_response"}}}, nil, "unknown_label"},
		{"unknown label scored", api.Prediction{SchemaName: "mood", Payload: api.Payload{Label: "sad", Scores: map[string]float64{"angry": 0.5}}}, nil, "unknown_label"},
		{"ordinal as a float", api.Prediction{SchemaName: "quality", Payload: api.Payload{Label: "3.0"}}, nil, "unknown_label"},
		{"NaN", api.Prediction{SchemaName: "mood", Confidence: number(math.NaN()), Payload: api.Payload{Label: "sad"}}, nil, "bad_confidence"},
		{"infinite", api.Prediction{SchemaName: "mood", Confidence: number(math.Inf(1)), Payload: api.Payload{Label: "sad"}}, nil, "bad_confidence"},
		{"over one", api.Prediction{SchemaName: "mood", Confidence: number(1.01), Payload: api.Payload{Label: "sad"}}, nil, "bad_confidence"},
		{"below nought in the payload", api.Prediction{SchemaName: "mood", Payload: api.Payload{Label: "sad", Confidence: number(-0.1)}}, nil, "bad_confidence"},
		{"a score that is NaN", api.Prediction{SchemaName: "mood", Payload: api.Payload{Label: "sad", Scores: map[string]float64{"sad": math.NaN()}}}, nil, "bad_confidence"},
	}
	for _, c := range cases {
		labels, err := rules().Check(c.p)
		if c.code == "" {
			if err != nil || !reflect.DeepEqual(labels, c.labels) {
				t.Errorf("%s: got %v, %v, want %v", c.name, labels, err, c.labels)
			}
			continue
		}
		if !api.HasCode(err, c.code) {
			t.Errorf("%s: got %v, want code %s", c.name, err, c.code)
		}
	}
}

func TestSplitRole(t *testing.T) {
	for name, want := range map[string]string{"train": "train", "test": "test", "unlabeled": "unlabeled", "val": "val", "dev": "val", "validation": "val"} {
		if got := api.SplitRole(name); got != want {
			t.Errorf("role of %s: got %s, want %s", name, got, want)
		}
	}
}

func TestReadPredictions(t *testing.T) {
	file := `{"instance_id": "a\ud83d", "schema_name": "mood", "payload": {"label": "sad", "confidence": 0.5, "scores": {"sad": 0.5, "happy": 0.25}, "more": [1]}, "confidence": 0.5}

{"instance_id": "", "schema_name": "topics", "payload": {"labels": ["food"], "confidence": null}, "confidence": NaN}
{"instance_id": "c", "schema_name": "topics", "payload": {"labels": [], "label": null, "scores": null}, "confidence": null}` // no newline at the end
	var got []api.Prediction
	for p, err := range api.ReadPredictions(strings.NewReader(file)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, p)
	}
	if len(got) != 3 {
		t.Fatalf("got %d predictions, want 3", len(got))
	}
	want := api.Prediction{InstanceID: "a\xed\xa0\xbd", SchemaName: "mood", Confidence: number(0.5), Payload: api.Payload{Label: "sad", Confidence: number(0.5), Scores: map[string]float64{"sad": 0.5, "happy": 0.25}}}
	if !reflect.DeepEqual(got[0], want) {
		t.Errorf("got %+v, want %+v", got[0], want)
	}
	if got[1].Confidence == nil || !math.IsNaN(*got[1].Confidence) {
		t.Errorf("confidence NaN came as %v", got[1].Confidence)
	}
	if got[2].Payload.Labels == nil || got[2].Confidence != nil {
		t.Errorf("a prediction of no label came as %+v", got[2])
	}
}

func TestReadPredictionsRefuses(t *testing.T) {
	good := `{"instance_id":"a","schema_name":"s","payload":{"label":"x"},"confidence":null}` + "\n"
	for name, line := range map[string]string{
		"cut in half":       `{"instance_id":"a","schema_`,
		"a list":            `[]`,
		"two objects":       `{"instance_id":"a","schema_name":"s"}{}`,
		"no id":             `{"schema_name":"s","payload":{"label":"x"}}`,
		"no scheme":         `{"instance_id":"a"}`,
		"a number as label": `{"instance_id":"a","schema_name":"s","payload":{"label":1}}`,
		"NUL bytes":         "\x00\x00",
		"endless":           `{"instance_id":"` + strings.Repeat("x", 17<<20) + `"}`,
	} {
		n := 0
		var last error
		for _, err := range api.ReadPredictions(strings.NewReader(good + line + "\n" + good)) {
			last = err
			n++
		}
		if n != 2 || !api.HasCode(last, "bad_prediction") || !strings.Contains(last.Error(), "line 2 ") {
			t.Errorf("%s: got %d rows and %v, want an error about line 2", name, n, last)
		}
	}
	// A long line is no mistake: a text of 1 MB may be an id.
	id := strings.Repeat("x", 1<<20)
	for p, err := range api.ReadPredictions(strings.NewReader(`{"instance_id":"` + id + `","schema_name":"s"}`)) {
		if err != nil || p.InstanceID != id {
			t.Errorf("long line: %d bytes of id, %v", len(p.InstanceID), err)
		}
	}
}

func FuzzReadPredictions(f *testing.F) {
	f.Add([]byte(`{"instance_id":"a","schema_name":"s","payload":{"label":"x","scores":{"x":1}},"confidence":NaN}` + "\n\x00"))
	f.Add([]byte(`{"instance_id":"\ud83d","schema_name":"s","payload":{"labels":[]}}`))
	r := rules()
	f.Fuzz(func(t *testing.T, b []byte) {
		for p, err := range api.ReadPredictions(strings.NewReader(string(b))) {
			var e *api.Error
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("an error that people cannot read: %v", err)
			}
			if err == nil {
				if p.SchemaName == "" {
					t.Fatal("a prediction without a scheme")
				}
				_, _ = r.Check(p)
			}
		}
	})
}

func BenchmarkReadPredictions(b *testing.B) {
	line := `{"instance_id": "rev-010", "schema_name": "mood", "payload": {"label": "happy", "confidence": 0.767744323944727, "scores": {"happy": 0.767744323944727, "sad": 0.2322}}, "confidence": 0.767744323944727}` + "\n"
	file := strings.Repeat(line, 10_000)
	r := rules()
	b.SetBytes(int64(len(file)))
	for b.Loop() {
		for p, err := range api.ReadPredictions(strings.NewReader(file)) {
			if err != nil {
				b.Fatal(err)
			}
			if _, err := r.Check(p); err != nil {
				b.Fatal(err)
			}
		}
	}
}
