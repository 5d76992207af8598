// Package runners brings the agent to the machine that trains: one runner for each type of backend.
//
// A runner knows no states and stores nothing. The supervisor owns a run's state and hands the runner a Job; what the agent
// has to say goes to its desk, which is the same for all backends.
package runners
