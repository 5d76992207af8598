package agent

import (
	"context"
	"log/slog"
	"os"

	"potato/api"
)

// Follower is the follower alone, for what needs many files quickly.
type Follower struct{ f follower }

// NewFollower follows the worker's files in dir, with a limit for lines.
func NewFollower(dir string, maxLine int64) *Follower {
	return &Follower{follower{dir: dir, logLimit: 1 << 40, maxLine: maxLine, at: position{Attempt: 1}}}
}

// Read returns what is new, each event with its attempt.
func (f *Follower) Read(final bool) (events []api.Event, err error) {
	for more := true; more; {
		var recs []record
		recs, more, err = f.f.turn(final)
		for _, r := range recs {
			r.Event.Attempt = r.Attempt
			events = append(events, r.Event)
		}
		if err != nil {
			return events, err
		}
	}
	return events, nil
}

// Again is a follower that goes on from what an outbox remembers of this one.
func (f *Follower) Again() *Follower {
	return &Follower{follower{dir: f.f.dir, logLimit: f.f.logLimit, maxLine: f.f.maxLine, at: f.f.at}}
}

// Clean is what a worker's bytes become.
var Clean = clean

// WorkerCodes are the codes that a worker may end a run with.
var WorkerCodes = workerCodes

// Drainer takes events over into an outbox whose disk can be full.
type Drainer struct {
	w    *work
	file *os.File
}

// NewDrainer drains the worker's files in dir.
func NewDrainer(dir string) (*Drainer, error) {
	out, err := openOutbox(dir, 1, 1)
	if err != nil {
		return nil, err
	}
	w := &work{out: out, follow: follower{dir: dir, logLimit: 1 << 30, maxLine: maxLine, at: out.at}}
	return &Drainer{w, out.file}, nil
}

// Drain reports whether it failed because the disk is full, and any other failure.
func (d *Drainer) Drain(ctx context.Context, full bool) (diskFull bool, err error) {
	d.w.out.file = d.file
	if full {
		if d.w.out.file, err = os.OpenFile("/dev/full", os.O_RDWR, 0); err != nil {
			return false, err
		}
		defer d.w.out.file.Close()
	}
	err = d.w.drain(ctx, false)
	if isDiskFull(err) {
		return true, nil
	}
	return false, err
}

// Events are those in the outbox.
func (d *Drainer) Events() ([]api.Event, error) {
	d.w.out.file = d.file
	return d.w.out.read(1)
}

// RunLogLines are the lines that an outbox in dir has of what say logs.
func RunLogLines(dir string, say func(*slog.Logger)) (lines []string) {
	out, err := openOutbox(dir, 1, 1)
	if err != nil {
		return []string{err.Error()}
	}
	defer out.close()
	say(newRunLogger(slog.New(slog.DiscardHandler), out))
	for {
		events, err := out.read(int64(len(lines)) + 1)
		if err != nil || len(events) == 0 {
			return lines
		}
		for _, e := range events {
			lines = append(lines, e.Msg)
		}
	}
}
