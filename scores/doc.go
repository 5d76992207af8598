// Package scores is where a run's held-out scores come from: pure functions from what annotators said about the val and
// test items of a bundle, and what the model predicted for them.
//
// Training items are never looked at. A figure that would mean nothing, because a split is empty or has one class, or
// because the model gives no probabilities, is null, and a warning says why.
package scores
