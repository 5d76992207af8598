package api

import (
	"math"
	"slices"
)

// PredictionRules judge each prediction of a run by itself: whether the scheme is one of the run's, whether the labels
// are the scheme's, whether the probabilities are any. Whether the item is one of the run's is the store's to know.
type PredictionRules struct {
	schemes map[string]predictionRule
}

type predictionRule struct {
	many   bool
	labels map[string]bool
}

// NewPredictionRules makes the rules for the predictions of a bundle. A label is known when the config names it or an
// annotator gave it.
func NewPredictionRules(m Manifest) *PredictionRules {
	r := &PredictionRules{schemes: map[string]predictionRule{}}
	for _, s := range m.Schemas {
		rule := predictionRule{many: s.Kind == KindMultilabel, labels: map[string]bool{}}
		for _, l := range slices.Concat(s.Labels, m.Labels[s.Name]) {
			rule.labels[l] = true
		}
		r.schemes[s.Name] = rule
	}
	return r
}

// Check returns the labels that a prediction gives, none for a multi-label prediction of nothing, or an Invalid error
// with code unknown_scheme, missing_label, unknown_label or bad_confidence.
func (r *PredictionRules) Check(p Prediction) ([]string, error) {
	rule, ok := r.schemes[p.SchemaName]
	if !ok {
		return nil, Invalidf("unknown_scheme", "the prediction for %q is for the scheme %q, which the run does not train", p.InstanceID, p.SchemaName).
			WithHint("a trainer predicts the schemes that its spec lists")
	}
	labels := p.Payload.Labels
	if !rule.many {
		if p.Payload.Label == "" {
			return nil, Invalidf("missing_label", "the prediction for %q has no label", p.InstanceID).
				WithHint("its payload must hold \"label\"")
		}
		labels = []string{p.Payload.Label}
	} else if labels == nil && p.Payload.Label != "" {
		return nil, Invalidf("missing_label", "the prediction for %q has one label where the scheme %q takes several", p.InstanceID, p.SchemaName).
			WithHint("the payload of a multi-label scheme must hold \"labels\", a list")
	}
	for _, l := range labels {
		if !rule.labels[l] {
			return nil, Invalidf("unknown_label", "the prediction for %q has the label %q, which the scheme %q does not have", p.InstanceID, l, p.SchemaName).
				WithHint("the labels are those of the manifest")
		}
	}
	for l, score := range p.Payload.Scores {
		if !probability(score) {
			return nil, badConfidence(p, score)
		}
		if !rule.labels[l] {
			return nil, Invalidf("unknown_label", "the prediction for %q scores the label %q, which the scheme %q does not have", p.InstanceID, l, p.SchemaName).
				WithHint("the labels are those of the manifest")
		}
	}
	for _, c := range []*float64{p.Confidence, p.Payload.Confidence} {
		if c != nil && !probability(*c) {
			return nil, badConfidence(p, *c)
		}
	}
	return labels, nil
}

// probability is false for NaN too, which compares as neither less nor more.
func probability(f float64) bool { return f >= 0 && f <= 1 }

func badConfidence(p Prediction, f float64) *Error {
	what := "outside 0 to 1"
	if math.IsNaN(f) {
		what = "not a number"
	}
	return Invalidf("bad_confidence", "the prediction for %q has the confidence %v, which is %s", p.InstanceID, f, what).
		WithHint("a model without probabilities gives null")
}
