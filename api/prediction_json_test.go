package api_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"potato/api"
)

// plainPayload and plainRow are what encoding/json makes of the types without their own encoder.
type plainPayload api.Payload

type plainRow struct {
	InstanceID string       `json:"instance_id"`
	SchemaName string       `json:"schema_name"`
	Split      string       `json:"split"`
	Payload    plainPayload `json:"payload"`
	Confidence *float64     `json:"confidence"`
	Target     []string     `json:"target"`
	Correct    *bool        `json:"correct"`
	Text       string       `json:"text"`
}

func plainly(t *testing.T, v any) string {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Our encoder writes what encoding/json writes, byte for byte, wherever that loses nothing.
func TestPredictionsEncodeAsEncodingJSONDoes(t *testing.T) {
	yes := true
	numbers := []float64{0, 1, 0.5, 1.0 / 3, 1e-6, 9.99e-7, 1e-7, 1.5e-10, 1e-100, 5e-324, 0.767744323944727, -0.25, math.Copysign(0, -1), 1e20, 1e21, 1.7976931348623157e308}
	texts := []string{"", "plain", `"quoted" \ /`, "\x00\x01\x1f\b\f\n\r\t\x7f", "<script>&amp;", "👩‍👩‍👧 \u200fעברית \ufeff", "\u2028\u2029", "=cmd()|'x", strings.Repeat("é", 5000)}
	for i, f := range numbers {
		for j, text := range texts {
			p := api.Payload{Label: text, Confidence: &f, Scores: map[string]float64{text: f, "z": numbers[(i+1)%len(numbers)], "a": 1}}
			if j%2 == 1 {
				p = api.Payload{Labels: []string{text, "b"}}
			}
			row := api.PredictionRow{InstanceID: text, SchemaName: "s", Split: "val", Payload: p, Confidence: p.Confidence, Target: []string{}, Text: text}
			if i%2 == 1 {
				row.Correct, row.Target = &yes, []string{text}
			}
			if got, want := plainly(t, p), plainly(t, plainPayload(p)); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			want := plainly(t, plainRow{text, "s", "val", plainPayload(p), p.Confidence, row.Target, row.Correct, text})
			if got := plainly(t, row); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	}
	if _, err := json.Marshal(api.Payload{Scores: map[string]float64{"a": math.NaN()}}); err == nil {
		t.Error("NaN was written as JSON")
	}
}

// Half a surrogate pair comes back as it was, and two different ids stay two (T54).
func TestPredictionsKeepWhatUTF8CannotHold(t *testing.T) {
	f := 0.5
	high, low := "half \xed\xa0\xbd pair", "half \xed\xb8\x80 pair"
	p := api.Payload{Label: high, Labels: []string{low}, Confidence: &f, Scores: map[string]float64{high: 0.5, low: 0.5}}
	b, err := json.Marshal(api.PredictionRow{InstanceID: high, Payload: p, Target: []string{low}, Text: low})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"instance_id":"half \ud83d pair","schema_name":"","split":"","payload":{"label":"half \ud83d pair","labels":["half \ude00 pair"],` +
		`"confidence":0.5,"scores":{"half \ud83d pair":0.5,"half \ude00 pair":0.5}},"confidence":null,"target":["half \ude00 pair"],"correct":null,"text":"half \ude00 pair"}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	text, err := p.AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := api.NewPayloadReader().Read(text); err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("got %+v, %v, want %+v", got, err, p)
	}
}

func TestNoScoresAreAnEmptyObject(t *testing.T) {
	if got, err := api.AppendScores([]byte("x"), nil); err != nil || string(got) != "x{}" {
		t.Errorf("got %q, %v", got, err)
	}
}
