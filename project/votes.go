package project

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"potato/api"
	"potato/api/pyjson"
)

// question is a scheme with the way its answers are read. Answers that mean the same are the same vote, however they
// are written: "yes": "yes", "yes": true and "yes": "true" all choose yes.
type question struct {
	api.Scheme
	description string
	style       answerStyle
	rank        map[string]int // label → place in the config
}

// freeResponse is the key of an answer in the annotator's own words, which is never a class.
const freeResponse = "free_response"

func newQuestion(s Scheme) *question {
	q := &question{
		Scheme:      api.Scheme{Name: s.Name, AnnotationType: s.AnnotationType, Kind: kindOf(s), Labels: []string{}},
		description: s.Description,
		style:       styles[s.AnnotationType],
		rank:        map[string]int{},
	}
	if s.SourceField != "" {
		q.SourceField = &s.SourceField
	}
	switch {
	case s.AnnotationType == "pairwise":
		q.Labels = append(q.Labels, "A", "B") // what is stored, whatever the config calls the two
	case len(s.Labels) > 0:
		for _, l := range s.Labels {
			q.Labels = append(q.Labels, l.Name)
		}
	case q.Kind == api.KindOrdinal:
		for i := 1; i <= cmp.Or(s.Size, 5); i++ {
			q.Labels = append(q.Labels, strconv.Itoa(i))
		}
	}
	for i, l := range q.Labels {
		if _, twice := q.rank[l]; !twice {
			q.rank[l] = i
		}
	}
	return q
}

// pair is one entry of an annotator's file: a key below the scheme, and its value.
type pair struct {
	name  string
	value pyjson.Value
}

// answer reads the labels that an annotator gave. None means that the answer holds no class: it is empty, in the
// annotator's own words only, or contradicts itself.
func (q *question) answer(pairs []pair) []string {
	var labels []string
	for _, p := range pairs {
		if _, known := q.rank[p.name]; p.name == freeResponse && !known {
			continue
		}
		switch q.style {
		case listOfLabels:
			labels = append(labels, listed(p.value)...)
		case valueIsLabel:
			labels = append(labels, q.valueLabel(p)...)
		default:
			if chosen(p) {
				labels = append(labels, p.name)
			}
		}
	}
	return q.canonical(labels)
}

// canonical brings labels into the one form in which they are compared.
func (q *question) canonical(labels []string) []string {
	switch q.Kind {
	case api.KindMultilabel:
		return q.sort(labels)
	case api.KindOrdinal:
		for i, l := range labels {
			labels[i] = q.point(l)
		}
	}
	if labels = q.sort(labels); len(labels) != 1 {
		return nil
	}
	return labels
}

// sort orders labels as the config does, those it does not name behind, and removes doubles.
func (q *question) sort(labels []string) []string {
	slices.SortFunc(labels, q.compare)
	return slices.Compact(labels)
}

func (q *question) compare(a, b string) int {
	i, known := q.rank[a]
	if !known {
		i = len(q.Labels)
	}
	j, known := q.rank[b]
	if !known {
		j = len(q.Labels)
	}
	if i == j && q.Kind == api.KindOrdinal { // points beyond the scale
		x, errX := strconv.ParseFloat(a, 64)
		y, errY := strconv.ParseFloat(b, 64)
		if errX == nil && errY == nil {
			return cmp.Compare(x, y)
		}
	}
	return cmp.Or(cmp.Compare(i, j), strings.Compare(a, b))
}

// point is a point of a scale: a whole number without a fraction, whoever wrote 4 as 4.0.
func (q *question) point(label string) string {
	if _, known := q.rank[label]; known {
		return label
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(label), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return label
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.FormatInt(int64(f), 10)
	}
	return pyjson.FloatRepr(f)
}

// chosen reports whether a key is set. A label that is itself called false is set by its own name.
func chosen(p pair) bool {
	if p.value.Kind == pyjson.String && p.value.Text == "false" {
		return p.name == "false"
	}
	return p.value.Truthy()
}

// valueLabel is the label of a type that keeps it in the value. Where the value only says yes, the key is the label.
func (q *question) valueLabel(p pair) []string {
	v := p.value
	switch {
	case v.Kind == pyjson.String && v.Text != "":
		_, known := q.rank[v.Text]
		if !known && strings.EqualFold(v.Text, "true") {
			return []string{p.name}
		}
		if !known && strings.EqualFold(v.Text, "false") {
			return nil
		}
		return []string{v.Text}
	case v.Kind == pyjson.Bool && v.Truthy():
		return []string{p.name}
	case v.Kind == pyjson.Number:
		if _, known := q.rank[v.Str()]; !known && v.Text == "1" {
			if _, known := q.rank[p.name]; known {
				return []string{p.name}
			}
		}
		return []string{v.Str()}
	}
	return nil
}

// listed reads a list of labels: a list, a list written as JSON in a text, or words between commas.
func listed(v pyjson.Value) []string {
	if v.Kind == pyjson.String {
		text := strings.TrimSpace(v.Text)
		if inner, err := pyjson.Parse([]byte(text)); err == nil && inner.Kind == pyjson.Array {
			return listed(inner)
		}
		var out []string
		for word := range strings.SplitSeq(text, ",") {
			if word = strings.TrimSpace(word); word != "" {
				out = append(out, word)
			}
		}
		return out
	}
	var out []string
	for _, e := range v.Elements {
		if e.Truthy() {
			out = append(out, e.Str())
		}
	}
	return out
}

// decided reads a value that stands for a whole answer: an adjudicator's decision or a pre-label. It is a label, a list
// of labels, a map of labels, or a map with "label" or "labels".
func (q *question) decided(v pyjson.Value) []string {
	switch v.Kind {
	case pyjson.Object:
		if l, ok := v.Get("labels"); ok && l.Kind == pyjson.Array {
			return q.decided(l)
		}
		if l, ok := v.Get("label"); ok {
			return q.decided(l)
		}
		pairs := make([]pair, 0, len(v.Members))
		for _, m := range v.Members {
			pairs = append(pairs, pair{m.Name, m.Value})
		}
		return q.answer(pairs)
	case pyjson.Array:
		return q.canonical(listed(v))
	case pyjson.String, pyjson.Number:
		text := v.Str()
		if _, known := q.rank[text]; !known && q.Kind == api.KindMultilabel {
			// The published tool joins several labels with a bar when it predicts them.
			return q.canonical(strings.Split(text, "|"))
		}
		if text == "" {
			return nil
		}
		return q.canonical([]string{text})
	}
	return nil
}
