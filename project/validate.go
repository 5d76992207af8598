package project

import "potato/api"

// Report is what Load found in a config. Errors stop a start; warnings do not.
type Report struct {
	File         string
	Errors       []api.Problem
	Warnings     []api.Problem
	Acknowledged []api.Problem
}
