package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"potato/api"
)

// LockName is the name of the lock below the training folder.
const LockName = "lock"

// Holder is who has a study's training folder: written into the lock for the person who starts a second server.
type Holder struct {
	Pid   int     `json:"pid"`
	Host  string  `json:"host"`
	URL   string  `json:"url"`
	Since float64 `json:"since"`
}

// Lock is the right to run the study's training. The kernel lets go of it with the process, however that ends.
type Lock struct {
	f      *os.File
	holder Holder
}

// LockDir takes the training folder for this process. When another has it, the error is a Conflict with code
// study_in_use that says who.
func LockDir(dir string, now time.Time) (*Lock, error) {
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, LockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, cannotOpen("the lock of the training folder", err)
	}
	if err := flock(f); err != nil {
		defer f.Close() //nolint:errcheck // only read from
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, inUse(f, dir)
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	l := &Lock{f: f, holder: Holder{Pid: os.Getpid(), Host: host, Since: float64(now.UnixMilli()) / 1000}}
	if err := l.write(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return l, nil
}

// A killed server's lock can outlive it for moments: a child that it forked, and that has not become its own program yet,
// still holds the file.
const (
	lockPatience = time.Second
	lockRetry    = 20 * time.Millisecond
)

func flock(f *os.File) error {
	for waited := time.Duration(0); ; waited += lockRetry {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || waited >= lockPatience {
			return err
		}
		time.Sleep(lockRetry)
	}
}

func inUse(f io.Reader, dir string) error {
	var h Holder
	who := "another server"
	if json.NewDecoder(f).Decode(&h) == nil && h.Pid != 0 {
		who = fmt.Sprintf("another server (pid %d on %s", h.Pid, h.Host)
		if h.URL != "" {
			who += ", " + h.URL
		}
		who += ")"
	}
	return api.Conflictf("study_in_use", "%s already runs this study's training in %s", who, dir).
		WithHint("use that server, or stop it first; two studies need folders of their own")
}

// Announce writes the server's address into the lock, once it is known.
func (l *Lock) Announce(url string) error {
	l.holder.URL = url
	return l.write()
}

// write keeps the file and its lock: a new file under the same name would not be locked.
func (l *Lock) write() error {
	b, err := json.Marshal(l.holder)
	if err != nil {
		return err
	}
	err = l.f.Truncate(0)
	if err == nil {
		_, err = l.f.WriteAt(append(b, '\n'), 0)
	}
	if err != nil {
		return cannotOpen("the lock of the training folder", err)
	}
	return nil
}

// Unlock lets go of the folder.
func (l *Lock) Unlock() error { return l.f.Close() }

// Holding says who has the training folder right now; false when nobody has.
func Holding(dir string) (Holder, bool) {
	f, err := os.Open(filepath.Join(dir, LockName))
	if err != nil {
		return Holder{}, false
	}
	defer f.Close() //nolint:errcheck // only read from, and with it goes a lock that we got
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		return Holder{}, false
	}
	var h Holder
	return h, json.NewDecoder(f).Decode(&h) == nil
}
