package store

import (
	"errors"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"potato/api"
)

// writeError turns the failures that people can mend into errors that say how; all others pass as they are.
func writeError(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff { // the rest of the code is detail
	case sqlite3.SQLITE_FULL:
		return DiskFull(err)
	case sqlite3.SQLITE_READONLY:
		return api.Unavailablef("read_only", "the training database cannot be written").
			WithHint("give the server's account write access to the training folder").WithCause(err)
	default:
		return err
	}
}

// DiskFull is the error of a write that found no room. What was saved before stays as it was.
func DiskFull(cause error) *api.Error {
	return api.Unavailablef("disk_full", "the disk of the training folder is full; nothing that was saved is lost").
		WithHint("free some space, or move the folder with model_training.training_dir, and start the run again").
		WithCause(cause)
}

func isUnique(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE
}
