// Package runnertest is the contract of a runner as tests: a suite that every runner passes, a fake runner that passes it
// too, and what both need: a small study, trainers that behave as badly as asked, a desk.
package runnertest
