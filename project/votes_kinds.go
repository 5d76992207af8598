package project

import (
	"fmt"

	"potato/api"
)

// kinds of the annotation types that are more than unsupported. Types with a pair of numbers, a table or an order of
// several things are a matrix; card_sort sorts an item's cards and gives no class of the item.
var kinds = map[string]api.SchemeKind{
	"radio": api.KindNominal, "select": api.KindNominal, "triage": api.KindNominal, "conjoint": api.KindNominal, "pairwise": api.KindNominal,
	"likert": api.KindOrdinal, "confidence": api.KindOrdinal,
	"multiselect": api.KindMultilabel, "hierarchical_multiselect": api.KindMultilabel,
	"slider": api.KindContinuous, "number": api.KindContinuous, "vas": api.KindContinuous,
	"span": api.KindSpan, "error_span": api.KindSpan, "coreference": api.KindSpan, "span_link": api.KindSpan,
	"extractive_qa": api.KindSpan, "event_annotation": api.KindSpan, "multi_document_event": api.KindSpan,
	"multirate": api.KindMatrix, "bws": api.KindMatrix, "constant_sum": api.KindMatrix, "soft_label": api.KindMatrix, "ranking": api.KindMatrix,
	"range_slider": api.KindMatrix, "semantic_differential": api.KindMatrix, "rubric_eval": api.KindMatrix, "table_grid": api.KindMatrix, "card_sort": api.KindMatrix,
	"image_annotation": api.KindGeometry, "volume_annotation": api.KindGeometry, "spatial_annotation": api.KindGeometry,
	"geo_annotation": api.KindGeometry, "region_caption": api.KindGeometry,
	"audio_annotation": api.KindTemporal, "video_annotation": api.KindTemporal, "spectrogram_annotation": api.KindTemporal,
	"temporal_grounding": api.KindTemporal, "tiered_annotation": api.KindTemporal,
}

// kindOf is what a scheme's answers are to a trainer.
func kindOf(s Scheme) api.SchemeKind {
	kind, ok := kinds[s.AnnotationType]
	switch {
	case !ok:
		return api.KindUnsupported
	case s.AnnotationType == "pairwise" && s.Mode == "scale":
		return api.KindContinuous
	case s.AnnotationType == "pairwise" && s.Mode == "multi_dimension":
		return api.KindMatrix
	case kind == api.KindMultilabel && (s.MaxChoices == 1 || s.MaxSelections == 1):
		return api.KindNominal
	}
	return kind
}

func trainable(k api.SchemeKind) bool {
	return k == api.KindNominal || k == api.KindOrdinal || k == api.KindMultilabel
}

// whyNot says why a kind of answers is not trained on.
func whyNot(s api.Scheme) string {
	what := map[api.SchemeKind]string{
		api.KindContinuous: "numbers on a continuous scale",
		api.KindSpan:       "spans of the text",
		api.KindMatrix:     "several values for each item",
		api.KindGeometry:   "shapes",
		api.KindTemporal:   "stretches of time",
	}[s.Kind]
	if what == "" {
		what = "no classes of the items"
	}
	return fmt.Sprintf("The answers to %q (%s) are %s; radio, select, multiselect, likert, confidence, pairwise, conjoint and triage can be trained.", s.Name, s.AnnotationType, what)
}

// answerStyle is how the answers of an annotation type are written in annotators' files.
type answerStyle int

const (
	nameIsLabel  answerStyle = iota // radio: the label is the key, the value says that it is chosen
	valueIsLabel                    // select: a fixed key, the label is the value
	listOfLabels                    // hierarchical_multiselect: a fixed key, the value lists the labels
)

var styles = map[string]answerStyle{
	"select": valueIsLabel, "triage": valueIsLabel, "conjoint": valueIsLabel, "pairwise": valueIsLabel,
	"hierarchical_multiselect": listOfLabels,
}

// Schemes lists the study's schemes as trainers see them, in the config's order.
func (c *Config) Schemes() []api.Scheme {
	out := make([]api.Scheme, 0, len(c.AnnotationSchemes))
	for _, s := range c.AnnotationSchemes {
		out = append(out, newQuestion(s).Scheme)
	}
	return out
}

// SchemeByName finds a scheme of the study.
func (c *Config) SchemeByName(name string) (api.Scheme, bool) {
	for _, s := range c.AnnotationSchemes {
		if s.Name == name {
			return newQuestion(s).Scheme, true
		}
	}
	return api.Scheme{}, false
}
