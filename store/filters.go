package store

import "potato/api"

// RunFilter selects and orders runs. The zero value is the newest page of all.
type RunFilter struct {
	Status  []api.RunStatus
	Trainer string
	Backend string
	Q       string // part of the id, trainer, scheme, backend, host, who started it, or the error
	Sort    string // a name of RunSorts, descending with a minus before it; absent: -created_at
	Cursor  string // Next of the page before
	Limit   int    // absent: 50; at most 500
}

// PredictionFilter selects predictions of a run. The zero value is the first page of all.
type PredictionFilter struct {
	Schema string
	Split  string
	Label  string
	Wrong  bool   // only held-out items whose prediction is not the target
	Q      string // part of the item's id or text
	Cursor string
	Limit  int // absent: 50; at most 1000
}
