package api

// AutoRetrain is the state of automatic retraining (R9).
type AutoRetrain struct {
	Enabled         bool     `json:"enabled"`
	Trainer         string   `json:"trainer"`
	Schemas         []string `json:"schemas"`
	Backend         string   `json:"backend"`
	UpdateFrequency int      `json:"update_frequency"`
	MinIntervalS    float64  `json:"min_interval_s"`
	NewAnnotations  int      `json:"new_annotations" doc:"Since the last run that auto-retrain started"`
	SkipReason      string   `json:"skip_reason" doc:"Why it does not train now, as a sentence; empty when it is about to"`
}
