package api

// SchemeKind is what a scheme's answers are to a trainer.
type SchemeKind string

// The kinds of schemes. Trainers take the first three; the others are named so that a refusal can say why.
const (
	KindNominal     SchemeKind = "nominal"
	KindOrdinal     SchemeKind = "ordinal"
	KindMultilabel  SchemeKind = "multilabel"
	KindContinuous  SchemeKind = "continuous"
	KindSpan        SchemeKind = "span"
	KindMatrix      SchemeKind = "matrix"
	KindGeometry    SchemeKind = "geometry"
	KindTemporal    SchemeKind = "temporal"
	KindUnsupported SchemeKind = "unsupported"
)

// Scheme is one annotation scheme of a study as a trainer sees it; the spec and the bundle's manifest list them.
type Scheme struct {
	Name           string     `json:"name"`
	AnnotationType string     `json:"annotation_type" example:"radio"`
	Kind           SchemeKind `json:"kind" enum:"nominal,ordinal,multilabel,continuous,span,matrix,geometry,temporal,unsupported"`
	Labels         []string   `json:"labels" doc:"The configured labels, in the config's order; empty when the type has none"`
	SourceField    *string    `json:"source_field" nullable:"true"`
}

// SchemeSummary is a scheme as the page lists it: may it be trained, with what, and what labels are there.
type SchemeSummary struct {
	Name              string       `json:"name"`
	AnnotationType    string       `json:"annotation_type"`
	Kind              SchemeKind   `json:"kind" enum:"nominal,ordinal,multilabel,continuous,span,matrix,geometry,temporal,unsupported"`
	Description       string       `json:"description"`
	Trainable         bool         `json:"trainable"`
	Trainers          []string     `json:"trainers" doc:"Trainers that take this kind"`
	Reason            string       `json:"reason" doc:"Why it cannot be trained now, as a sentence; empty when it can"`
	NItems            int          `json:"n_items" doc:"Items in the study"`
	NLabeled          int          `json:"n_labeled" doc:"Items with a usable target"`
	NUnlabeled        int          `json:"n_unlabeled" doc:"Items nobody has labelled"`
	PredictsUnlabeled bool         `json:"predicts_unlabeled" doc:"A run predicts those too (writeback.include_unlabeled)"`
	NAnnotators       int          `json:"n_annotators"`
	LabelCounts       []LabelCount `json:"label_counts" doc:"Most frequent first"`
	Agreement         *float64     `json:"agreement" nullable:"true" doc:"Krippendorff's alpha (nominal) over items with two answers or more; null when there are none"`
}

// LabelCount is how many items carry a label.
type LabelCount struct {
	Label string `json:"label"`
	N     int    `json:"n"`
}

// SchemeList lists the schemes of the study.
type SchemeList struct {
	Schemas []SchemeSummary `json:"schemas"`
}
