package api

// MetricsReport is a run's scores as tables and curves.
type MetricsReport struct {
	Schemas []SchemaScores `json:"schemas"`
	Curves  []Curve        `json:"curves" doc:"What the trainer reported while it trained"`
}

// SchemaScores are one scheme's held-out scores; train is measured on rows the model has seen and named so.
type SchemaScores struct {
	Schema   string       `json:"schema"`
	Kind     SchemeKind   `json:"kind"`
	Val      *SplitScores `json:"val"`
	Test     *SplitScores `json:"test"`
	Train    Metrics      `json:"train" doc:"Figures on training rows, as the trainer reported them"`
	Warnings []string     `json:"warnings"`
}

// SplitScores are the scores on one held-out split. A figure that cannot be given is null, with a warning that says why.
type SplitScores struct {
	N              int          `json:"n"`
	Accuracy       *float64     `json:"accuracy" nullable:"true" doc:"Multi-label: subset accuracy"`
	MacroF1        *float64     `json:"macro_f1" nullable:"true" doc:"Over the labels that occur in truth or prediction of the split"`
	MicroF1        *float64     `json:"micro_f1" nullable:"true" doc:"Multi-label only"`
	ECE            *float64     `json:"ece" nullable:"true" doc:"Expected calibration error, 15 equal-width bins of the top label's probability"`
	MAE            *float64     `json:"mae" nullable:"true" doc:"Ordinal only: mean absolute error in scale points"`
	QuadraticKappa *float64     `json:"quadratic_kappa" nullable:"true" doc:"Ordinal only"`
	Labels         []LabelScore `json:"labels"`
	Confusion      *Confusion   `json:"confusion" doc:"Null for multi-label"`
	Reliability    []Bin        `json:"reliability" doc:"Filled bins of the reliability diagram"`
	Warnings       []string     `json:"warnings"`
}

// LabelScore is one label's row of the per-label table.
type LabelScore struct {
	Label     string   `json:"label"`
	Precision *float64 `json:"precision" nullable:"true"`
	Recall    *float64 `json:"recall" nullable:"true"`
	F1        *float64 `json:"f1" nullable:"true"`
	Support   int      `json:"support" doc:"Items of the split with this label"`
	Predicted int      `json:"predicted" doc:"Items of the split predicted as this label"`
}

// Confusion counts items by true label (row) and predicted label (column).
type Confusion struct {
	Labels []string `json:"labels"`
	Counts [][]int  `json:"counts"`
}

// Bin is one bar of a reliability diagram.
type Bin struct {
	Lower      float64 `json:"lower"`
	Upper      float64 `json:"upper"`
	N          int     `json:"n"`
	Confidence float64 `json:"confidence" doc:"Mean in the bin"`
	Accuracy   float64 `json:"accuracy"`
}

// Curve is a metric over training steps.
type Curve struct {
	Schema  string  `json:"schema"`
	Split   string  `json:"split"`
	Name    string  `json:"name"`
	Attempt int     `json:"attempt"`
	Points  []Point `json:"points"`
}

// Point is one value of a curve.
type Point struct {
	Step  float64 `json:"step"`
	Value float64 `json:"value"`
	T     float64 `json:"t"`
}
