// Package store is where the training server keeps what it must not forget: one SQLite file below the study's training
// folder, with the runs, the items that each run saw, what each run predicted, and which prediction each item shows.
//
// It has one writer and several readers. Everything that changes in one call changes in one transaction, and a change of
// a run's state names the state it comes from, so that of two callers one wins and the other is told.
// A run's events and logs are files of the run's folder, not rows here.
package store
