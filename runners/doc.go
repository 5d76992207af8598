// Package runners is where a run becomes work on a machine and comes back as scores: the supervisor with its queue,
// states and the tail of a run, and one runner for each type of backend.
//
// The supervisor owns a run's state and never trains; a runner trains and knows no states. Between them stands the
// agent's desk, which is the same for all backends.
package runners
