package api

// Prediction is a model's answer for one item and scheme, a line of predictions.jsonl.
type Prediction struct {
	InstanceID string   `json:"instance_id"`
	SchemaName string   `json:"schema_name"`
	Payload    Payload  `json:"payload"`
	Confidence *float64 `json:"confidence" nullable:"true" doc:"0 to 1; null when the model has no probabilities"`
}

// Payload is what was predicted: a label, or several for multi-label schemes, and the probability of each label.
type Payload struct {
	Label      string             `json:"label,omitempty"`
	Labels     []string           `json:"labels,omitzero" doc:"Multi-label: the labels predicted, maybe none"`
	Confidence *float64           `json:"confidence" nullable:"true"`
	Scores     map[string]float64 `json:"scores,omitempty" doc:"Probability of each label"`
}

// PredictionRow is a stored prediction as the API lists it, beside what annotators said.
type PredictionRow struct {
	InstanceID string   `json:"instance_id"`
	SchemaName string   `json:"schema_name"`
	Split      string   `json:"split" enum:"val,test,unlabeled"`
	Payload    Payload  `json:"payload"`
	Confidence *float64 `json:"confidence" nullable:"true"`
	Target     []string `json:"target" doc:"The held-out item's label or labels; empty for unlabelled items"`
	Correct    *bool    `json:"correct" nullable:"true" doc:"Null for unlabelled items"`
	Text       string   `json:"text" doc:"The item's text; on a page of JSON cut to 500 characters, in exports whole as long as the run's files are there"`
}

// PredictionList is a page of predictions.
type PredictionList struct {
	Predictions []PredictionRow `json:"predictions"`
	Total       int             `json:"total" doc:"How many match the filter"`
	Next        string          `json:"next,omitempty"`
}
