package main

import (
	"fmt"
	"slices"
)

// row is one line of the report.
type row struct {
	Name    string    `json:"name"`
	What    string    `json:"what"`
	Unit    string    `json:"unit"`
	Against string    `json:"against,omitempty"` // whose figures Peer are; none for this server alone
	Peer    []float64 `json:"peer,omitempty"`
	Ours    []float64 `json:"ours"`
	Bar     *bar      `json:"bar,omitempty"`

	PeerMedian float64 `json:"peer_median,omitempty"`
	OursMedian float64 `json:"ours_median"`
	Ratio      float64 `json:"ratio,omitempty"`
	Met        *bool   `json:"met,omitempty"`
}

// bar is what a row is held to: its ratio, or its own figure when nothing stands beside it.
type bar struct {
	Limit   float64 `json:"limit"`
	AtLeast bool    `json:"at_least,omitempty"`
	Line    string  `json:"line"` // of the specification
}

func atMost(limit float64, line string) *bar  { return &bar{Limit: limit, Line: line} }
func atLeast(limit float64, line string) *bar { return &bar{Limit: limit, AtLeast: true, Line: line} }

// judge fills in what follows from the samples.
func (r row) judge() row {
	r.OursMedian = median(r.Ours)
	figure := r.OursMedian
	if len(r.Peer) > 0 {
		r.PeerMedian = median(r.Peer)
		r.Ratio = r.OursMedian / r.PeerMedian
		figure = r.Ratio
	}
	if r.Bar != nil && len(r.Ours) > 0 {
		met := figure <= r.Bar.Limit
		if r.Bar.AtLeast {
			met = figure >= r.Bar.Limit
		}
		r.Met = &met
	}
	return r
}

func (b *bar) String() string {
	if b.AtLeast {
		return fmt.Sprintf("≥ %g", b.Limit)
	}
	return fmt.Sprintf("≤ %g", b.Limit)
}

// median of the samples, and 0 of none.
func median(samples []float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(samples))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
