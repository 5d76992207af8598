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
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return busy("the training database", err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR:
		return api.Unavailablef("database_damaged", "the training database is damaged or gone").
			WithHint("stop the server, look at the disk and put %s back from a backup, or move it away to begin anew", FileName).WithCause(err)
	default:
		return err
	}
}

// openError says of a database that cannot be used what to do about it.
func openError(path string, err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY:
		return writeError(err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return busy("the training database "+path, err)
	default:
		return api.Unavailablef("database_damaged", "the training database %s is damaged or not one of this program: %v", path, e).
			WithHint("put it back from a backup, or move it away and start again: earlier runs are no longer listed then, their folders stay").WithCause(err)
	}
}

func busy(what string, cause error) *api.Error {
	return api.Unavailablef("database_busy", "another program holds %s", what).
		WithHint("end that program or wait for it, and try again").WithCause(cause)
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
