package api

// LogLine is one line of a run's log.
type LogLine struct {
	N     int64   `json:"n" doc:"From 1"`
	T     float64 `json:"t" doc:"0 when the file has no times"`
	Level string  `json:"level"`
	Text  string  `json:"text"`
}

// LogLines is a stretch of a log.
type LogLines struct {
	Lines []LogLine `json:"lines"`
	Total int64     `json:"total" doc:"Lines in the whole log, or matching the search"`
}
