package api

// Manifest describes a bundle: what a worker trains on (R3). Its form is the published peer's, version 1.
type Manifest struct {
	V           int                      `json:"v"`
	Schemas     []Scheme                 `json:"schemas"`
	Splits      map[string]ManifestSplit `json:"splits"`
	Labels      map[string][]string      `json:"labels" doc:"Observed labels of each scheme, sorted"`
	MediaDir    string                   `json:"media_dir"`
	Modality    string                   `json:"modality"`
	TextKey     string                   `json:"text_key"`
	SplitSeed   int64                    `json:"split_seed"`
	Aggregation string                   `json:"aggregation"`
	Stats       BundleStats              `json:"stats"`
	Digest      string                   `json:"digest" doc:"SHA-256 over basename and content of each file, in path order"`
}

// ManifestSplit is one file of rows.
type ManifestSplit struct {
	Path        string `json:"path"`
	Format      string `json:"format"`
	N           int    `json:"n"`
	PredictOnly bool   `json:"predict_only,omitempty"`
}

// BundleStats counts what went into a bundle.
type BundleStats struct {
	NItems          int            `json:"n_items"`
	NAnnotated      int            `json:"n_annotated"`
	NSkippedNoLabel int            `json:"n_skipped_no_label"`
	NMediaLinked    int            `json:"n_media_linked"`
	NMediaMissing   int            `json:"n_media_missing"`
	Splits          map[string]int `json:"splits"`
	Warnings        []string       `json:"warnings"`
}

// Row is one item of a bundle. Targets hold a string (nominal), a number (ordinal) or a list of strings (multi-label).
type Row struct {
	InstanceID string         `json:"instance_id"`
	Text       string         `json:"text"`
	Targets    map[string]any `json:"targets,omitempty"`
	Media      string         `json:"media,omitempty"`
}
