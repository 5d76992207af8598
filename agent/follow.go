package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"potato/api"
)

const (
	readSize    = 256 << 10 // how much of a file is read at once
	maxLine     = 32 << 20  // a longer line is not parsed
	readPerTurn = 1 << 20   // how much of each file a turn reads, so that a flood holds up nothing else
	guardSize   = 64        // bytes before the place of reading that must still be as they were
)

// follower reads what the worker writes, from a place that the outbox remembers. Files are opened anew each time: they
// may be renamed, cut short, or lie on network storage.
type follower struct {
	dir      string
	logLimit int64
	maxLine  int64
	at       position
	scanned  int64  // no line ends between at.Offset.Events and here
	guard    []byte // the bytes before at.Offset.Events, as they were read
}

// turn reads what is new, and reports whether there is more. With final the worker has ended: what is left without an
// end of line is a line too.
func (f *follower) turn(final bool) (recs []record, more bool, err error) {
	events, moreEvents, err := f.events(final)
	if err != nil {
		return nil, false, err
	}
	recs = events
	for _, s := range []struct {
		name string
		at   *int64
	}{{stderrFile, &f.at.Offset.Stderr}, {stdoutFile, &f.at.Offset.Stdout}} {
		chunks, moreOutput, err := f.output(s.name, s.at, final)
		recs = append(recs, chunks...)
		more = more || moreOutput
		if err != nil {
			return recs, more, err
		}
	}
	return recs, more || moreEvents, nil
}

func (f *follower) record(e api.Event) record {
	return record{Attempt: f.at.Attempt, Offset: f.at.Offset, Event: e}
}

// events reads lines of the events file of the present attempt. When a scheduler has started the worker anew, the
// earlier attempt's file has been renamed; it is read to its end before the new one is begun.
func (f *follower) events(final bool) (recs []record, more bool, err error) {
	path := filepath.Join(f.dir, eventsFile)
	file, err := os.Open(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, false, fmt.Errorf("follow events: %w", err)
	}
	// Looked for only now: had the file been renamed before we opened it, the old name would be there to see.
	rotated := filepath.Join(f.dir, fmt.Sprintf("events.%d.jsonl", f.at.Attempt))
	isRotated := false
	if old, err := os.Open(rotated); err == nil {
		if file != nil {
			_ = file.Close()
		}
		file, isRotated = old, true
	}
	if file == nil {
		return nil, false, nil
	}
	defer file.Close() //nolint:errcheck // only read from

	rewritten, size, err := f.rewritten(file)
	if err != nil {
		return nil, false, fmt.Errorf("follow events: %w", err)
	}
	if rewritten {
		f.nextAttempt()
	}
	recs, more, err = f.lines(file, size, final || isRotated)
	if err != nil {
		return recs, false, fmt.Errorf("follow events: %w", err)
	}
	if isRotated && !more {
		f.nextAttempt()
		more = true
	}
	return recs, more, nil
}

func (f *follower) nextAttempt() {
	f.at.Attempt++
	f.at.Offset.Events, f.scanned, f.guard = 0, 0, nil
}

// rewritten reports whether the file is another one than the one read so far, under the same name.
func (f *follower) rewritten(file *os.File) (bool, int64, error) {
	info, err := file.Stat()
	if err != nil {
		return false, 0, err
	}
	at := f.at.Offset.Events
	if info.Size() < at {
		return true, info.Size(), nil
	}
	if len(f.guard) == 0 {
		return false, info.Size(), nil
	}
	now := make([]byte, len(f.guard))
	if _, err := file.ReadAt(now, at-int64(len(now))); err != nil {
		return false, 0, err
	}
	return !bytes.Equal(now, f.guard), info.Size(), nil
}

// lines reads whole lines up to size, or as many as a turn may.
func (f *follower) lines(file *os.File, size int64, final bool) (recs []record, more bool, err error) {
	began := f.at.Offset.Events
	buf := make([]byte, min(readSize, size-began))
	for f.at.Offset.Events < size {
		if f.at.Offset.Events-began >= readPerTurn {
			return recs, true, nil
		}
		at := f.at.Offset.Events
		n, err := readAt(file, buf[:min(int64(len(buf)), size-at)], at)
		if err != nil || n == 0 {
			return recs, false, err
		}
		whole := bytes.LastIndexByte(buf[:n], '\n') + 1
		if whole > 0 {
			recs = f.take(recs, buf[:whole])
			continue
		}
		// Not one end of line: a long line, or the last one, of which more may come.
		end, err := f.lineEnd(file, size)
		if err != nil {
			return recs, false, err
		}
		if end < 0 && !final {
			return recs, false, nil
		}
		if end < 0 {
			end = size
		}
		if end-at > f.maxLine {
			head := make([]byte, 1000)
			n, err := readAt(file, head, at)
			if err != nil {
				return recs, false, err
			}
			f.pass(nil, end)
			recs = append(recs, f.record(logEvent("warning", fmt.Sprintf(
				"The worker wrote a line of %d bytes, which was left out: %s", end-at, cut(clean(head[:n]), 200)))))
			continue
		}
		line := make([]byte, end-at)
		if n, err := readAt(file, line, at); err != nil || n < len(line) {
			return recs, false, err
		}
		recs = f.take(recs, line)
	}
	return recs, false, nil
}

// lineEnd is the place after the next end of line, or -1. It does not search the same bytes twice.
func (f *follower) lineEnd(file *os.File, size int64) (int64, error) {
	buf := make([]byte, readSize)
	for at := max(f.scanned, f.at.Offset.Events); at < size; {
		n, err := readAt(file, buf[:min(int64(len(buf)), size-at)], at)
		if err != nil || n == 0 {
			return -1, err
		}
		if i := bytes.IndexByte(buf[:n], '\n'); i >= 0 {
			return at + int64(i) + 1, nil
		}
		at += int64(n)
		f.scanned = at
	}
	return -1, nil
}

// take reads the lines in b, which lies at the place of reading. A run of NULs, as a crash leaves it, ends a line too.
func (f *follower) take(recs []record, b []byte) []record {
	start := f.at.Offset.Events
	for i := 0; i < len(b); {
		end := len(b)
		if n := bytes.IndexAny(b[i:], "\n\x00"); n >= 0 {
			end = i + n + 1
		}
		line := bytes.TrimRight(b[i:end], "\n\x00")
		f.at.Offset.Events = start + int64(end)
		if len(bytes.TrimSpace(line)) > 0 {
			if e, ok := f.limit(parseLine(line)); ok {
				recs = append(recs, f.record(e))
			}
		}
		i = end
	}
	f.pass(b, start+int64(len(b)))
	return recs
}

// pass moves the place of reading to end; read are the bytes before it, as far as they are at hand.
func (f *follower) pass(read []byte, end int64) {
	f.at.Offset.Events, f.scanned = end, end
	f.guard = bytes.Clone(read[max(0, len(read)-guardSize):])
}

// limit counts what goes into the log, and says once that there will be no more of it.
func (f *follower) limit(e api.Event) (api.Event, bool) {
	if e.Event != api.EventLog {
		return e, true
	}
	if f.at.Offset.Logged >= f.logLimit {
		return e, false
	}
	f.at.Offset.Logged += int64(len(e.Msg)) + 1
	if f.at.Offset.Logged >= f.logLimit {
		e = logEvent("warning", fmt.Sprintf("The log has reached %d MB and ends here; the job directory %s has all of it", f.logLimit>>20, f.dir))
	}
	return e, true
}
