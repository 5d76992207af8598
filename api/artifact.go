package api

// Artifact is one file of a run's model.
type Artifact struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
	Where  string `json:"where" enum:"server,host"`
}

// ArtifactList lists a run's files.
type ArtifactList struct {
	Artifacts []Artifact `json:"artifacts"`
}
