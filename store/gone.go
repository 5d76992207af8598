package store

import (
	"errors"
	"io/fs"
	"os"

	"potato/api"
)

// Gone says that the database's file is no longer the one that was opened: somebody removed it, or put another in its place.
// Reads and writes would go on for a while, into a file that nobody ever sees again. It is nil when the file is there, and
// again when it was moved back.
func (d *DB) Gone() error {
	now, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil || os.SameFile(d.opened, now):
		return nil // a folder that cannot be looked into says nothing
	}
	return api.Unavailablef("database_gone", "the training database was removed or replaced while the server ran").
		WithHint("stop the server and put %s back from where it went or from a backup; without it the next start begins with no runs. "+
			"Until then nothing is saved and no run starts", FileName)
}
