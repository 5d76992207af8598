package project

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const stateFileName = "user_state.json"

// stateRetries is how often a state file that is half written is read again, and stateRetryWait the first pause, which
// doubles: three quarters of a second in all.
const (
	stateRetries   = 4
	stateRetryWait = 50 * time.Millisecond
	// stateFresh is how long after a file's last change somebody may still be writing it.
	stateFresh = 10 * time.Second
)

var (
	errStateChanged = errors.New("the file changed while it was read")
	errNoFile       = errors.New("it is not a file")
	errNoObject     = errors.New("it holds no JSON object")
)

// stateRead is the last reading of one annotator's file.
type stateRead struct {
	stamp os.FileInfo
	good  *annotator // of this reading, or of the last that went well
	err   error      // why this reading failed
}

// stateReads are the readings of all annotators' files, by folder.
type stateReads map[string]*stateRead

// refresh reads the files that are new or changed, several at a time, and returns the new state of things and whether
// it differs. Annotators come in the order of their folders' names.
func (old stateReads) refresh(ctx context.Context, root string, items *itemIndex, questions []*question) (stateReads, bool, error) {
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, false, fmt.Errorf("list the annotators: %w", err)
	}
	now, changed := stateReads{}, false
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(runtime.GOMAXPROCS(0), 1))
	for _, e := range entries {
		path := filepath.Join(root, e.Name(), stateFileName)
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
			continue // no annotator's folder
		}
		before := old[e.Name()]
		if err != nil && before != nil && before.stamp == nil && before.err != nil && before.err.Error() == err.Error() {
			now[e.Name()] = before // what was worked out without it stands
			continue
		}
		if err != nil {
			r := &stateRead{err: err}
			if before != nil {
				r.good = before.good
			}
			now[e.Name()], changed = r, true
			continue
		}
		if before != nil && unchanged(before.stamp, info) {
			now[e.Name()] = before
			continue
		}
		changed = true
		after := &stateRead{}
		now[e.Name()] = after
		g.Go(func() error {
			after.read(ctx, path, e.Name(), items, questions)
			if after.err != nil && before != nil {
				after.good = before.good
			}
			return ctx.Err()
		})
	}
	if err := g.Wait(); err != nil {
		return nil, false, err
	}
	return now, changed || len(now) != len(old), nil
}

// read reads the file, again after a pause when it is half written.
func (s *stateRead) read(ctx context.Context, path, dir string, items *itemIndex, questions []*question) {
	wait := stateRetryWait
	for try := 0; ; try++ {
		s.once(path, dir, items, questions)
		if s.err == nil || !mayPass(s.err, s.stamp) || try == stateRetries {
			return
		}
		select {
		case <-ctx.Done():
			s.err = ctx.Err()
			return
		case <-time.After(wait):
			wait *= 2
		}
	}
}

// mayPass reports whether reading the file again may go better: it is half written, and not since long ago.
func mayPass(err error, stamp os.FileInfo) bool {
	if errors.Is(err, errStateChanged) {
		return true
	}
	return halfWritten(err) && stamp != nil && time.Since(stamp.ModTime()).Abs() < stateFresh
}

func (s *stateRead) once(path, dir string, items *itemIndex, questions []*question) {
	s.good, s.err = nil, nil
	in, err := openSaved(path)
	if err != nil {
		s.stamp, _ = os.Stat(path)
		s.err = err
		return
	}
	defer func() { _ = in.Close() }()
	if s.stamp, err = in.Stat(); err != nil {
		s.err = err
		return
	}
	a, err := parseState(in, dir, items, questions)
	if after, statErr := in.Stat(); statErr == nil && !unchanged(s.stamp, after) {
		err = errors.Join(errStateChanged, err)
	}
	if err != nil {
		s.err = err
		return
	}
	s.good = a
}

// openSaved opens a file that the annotation tool saves. Opening a pipe would wait for ever.
func openSaved(path string) (*os.File, error) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return nil, cmp.Or(err, errNoFile)
	}
	return os.Open(path)
}

// annotators lists the annotators whose labels are known, in the order of their folders.
func (r stateReads) annotators() []*annotator {
	var out []*annotator
	for _, dir := range r.dirs() {
		if a := r[dir].good; a != nil {
			out = append(out, a)
		}
	}
	return out
}

func (r stateReads) dirs() []string {
	dirs := make([]string, 0, len(r))
	for dir := range r {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	return dirs
}

// warnings say whose labels could not be read, and what is used instead.
func (r stateReads) warnings() []string {
	var out []string
	for _, dir := range r.dirs() {
		s := r[dir]
		if s.err == nil {
			continue
		}
		instead := "the labels of this annotator are missing"
		if s.good != nil {
			instead = "the labels as they were at the last good reading are used"
		}
		out = append(out, fmt.Sprintf("%s cannot be read (%s): %s", filepath.Join(dir, stateFileName), stateTrouble(s.err), instead))
	}
	return out
}

// stateTrouble says in words why a state file could not be read. Paths and system texts stay in the log.
func stateTrouble(err error) string {
	switch {
	case errors.Is(err, errStateChanged):
		return "it is being written all the time"
	case errors.Is(err, os.ErrPermission):
		return "this account may not read it"
	case errors.Is(err, errNoFile), errors.Is(err, errNoObject):
		return err.Error()
	case halfWritten(err):
		return "it is cut off or no JSON: " + err.Error()
	default:
		return "it cannot be opened"
	}
}

// moved gives the annotator's votes the places that the items have in a new index.
func (a *annotator) moved(from, to *itemIndex) *annotator {
	b := *a
	b.votes = make([][]vote, len(a.votes))
	for q, votes := range a.votes {
		for _, v := range votes {
			if i, ok := to.find([]byte(from.items[v.item].id)); ok {
				v.item = i
				b.votes[q] = append(b.votes[q], v)
			}
		}
	}
	return &b
}
