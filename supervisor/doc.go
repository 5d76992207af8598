// Package supervisor owns the state of runs: it queues them, builds their bundles, hands them to a runner, takes what their
// agents say at the desk, and ends them with scores and published predictions.
//
// It goes to no machine itself and never trains; a runner does the one, the agent the other.
package supervisor
