package api

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"potato/api/pyjson"
)

// What encoding/json makes of a prediction is not what came in: half a surrogate pair, as ids and texts from the web hold
// it, becomes U+FFFD there, and two ids become one (T54). So predictions are written here, in encoding/json's form but with
// such halves as escapes, which is how Python's json writes them. It is quicker, too.

// AppendJSON appends the payload as JSON. A number that is none is an error, as for encoding/json.
func (p Payload) AppendJSON(b []byte) ([]byte, error) {
	b = append(b, '{')
	if p.Label != "" {
		b = append(pyjson.AppendString(append(b, `"label":`...), p.Label), ',')
	}
	if p.Labels != nil { // none of several is an answer, too
		b = append(AppendStrings(append(b, `"labels":`...), p.Labels), ',')
	}
	b, err := appendNumber(append(b, `"confidence":`...), p.Confidence)
	if err == nil && len(p.Scores) > 0 {
		b, err = AppendScores(append(b, `,"scores":`...), p.Scores)
	}
	return append(b, '}'), err
}

// MarshalJSON implements json.Marshaler.
func (p Payload) MarshalJSON() ([]byte, error) { return p.AppendJSON(nil) }

// AppendJSON appends the row as JSON.
func (r PredictionRow) AppendJSON(b []byte) ([]byte, error) {
	b = pyjson.AppendString(append(b, `{"instance_id":`...), r.InstanceID)
	b = pyjson.AppendString(append(b, `,"schema_name":`...), r.SchemaName)
	b = pyjson.AppendString(append(b, `,"split":`...), r.Split)
	b, err := r.Payload.AppendJSON(append(b, `,"payload":`...))
	if err != nil {
		return b, err
	}
	if b, err = appendNumber(append(b, `,"confidence":`...), r.Confidence); err != nil {
		return b, err
	}
	b = AppendStrings(append(b, `,"target":`...), r.Target)
	b = append(b, `,"correct":`...)
	if r.Correct == nil {
		b = append(b, "null"...)
	} else {
		b = strconv.AppendBool(b, *r.Correct)
	}
	b = pyjson.AppendString(append(b, `,"text":`...), r.Text)
	return append(b, '}'), nil
}

// MarshalJSON implements json.Marshaler.
func (r PredictionRow) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil) }

// AppendStrings appends a JSON list of texts.
func AppendStrings(b []byte, texts []string) []byte {
	b = append(b, '[')
	for i, s := range texts {
		if i > 0 {
			b = append(b, ',')
		}
		b = pyjson.AppendString(b, s)
	}
	return append(b, ']')
}

// AppendScores appends the probability of each label, sorted by label.
func AppendScores(b []byte, scores map[string]float64) ([]byte, error) {
	b = append(b, '{')
	var few [16]string // the labels of most schemes
	labels := few[:0]
	for l := range scores {
		labels = append(labels, l)
	}
	slices.Sort(labels)
	for i, l := range labels {
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		if b, err = appendFloat(append(pyjson.AppendString(b, l), ':'), scores[l]); err != nil {
			return b, err
		}
	}
	return append(b, '}'), nil
}

func appendNumber(b []byte, f *float64) ([]byte, error) {
	if f == nil {
		return append(b, "null"...), nil
	}
	return appendFloat(b, *f)
}

// appendFloat writes a number as encoding/json does: as ECMAScript, with 1e-7 for its 1e-07.
func appendFloat(b []byte, f float64) ([]byte, error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return b, fmt.Errorf("JSON has no number %v", f)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		b = strconv.AppendFloat(b, f, 'e', -1, 64)
		if n := len(b); b[n-4] == 'e' && b[n-3] == '-' && b[n-2] == '0' {
			b = append(b[:n-2], b[n-1])
		}
		return b, nil
	}
	return strconv.AppendFloat(b, f, 'f', -1, 64), nil
}
