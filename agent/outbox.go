package agent

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"potato/api"
)

const (
	maxBatch   = 1 << 20 // bytes of events that are sent at once
	maxEvents  = 1000    // and their number
	indexEvery = 256     // every so many lines the outbox remembers where it stands
)

// position says how far the worker's files have been read. Sequence numbers may be lost on the way, this may not: it is
// written together with the event it led to.
type position struct {
	Attempt int
	Offset  offsets
}

// offsets are bytes in the worker's files, and how much of it went into log events.
type offsets struct {
	Events int64 `json:"events"`
	Stdout int64 `json:"stdout"`
	Stderr int64 `json:"stderr"`
	Logged int64 `json:"logged"`
}

// record is a line of the outbox.
type record struct {
	Seq     int64     `json:"seq"`
	Attempt int       `json:"attempt"`
	Offset  offsets   `json:"offset"`
	Event   api.Event `json:"event"`
}

// outbox is the queue of events on their way to the server, on disk: one line of numbers over the run, the worker's
// events and the agent's own. Only the agent writes it, and before it sends. It is safe for one writer and one reader.
type outbox struct {
	mu    sync.Mutex
	file  *os.File
	size  int64
	first int64   // seq of the first line
	next  int64   // seq of the next one
	owed  int64   // the number after the last line that the server must have; the agent's own log may be lost
	index []int64 // where every 256th line begins
	grown chan struct{}

	sealed bool // nothing is added to the agent's own log any more
	hushed bool // and nothing of it sent

	at     position
	result *api.Event // of the present attempt
	failed *api.Event // the worker's last error event, of the present attempt

	readSeq, readAt int64 // where the last read ended: reading goes forward
}

// openOutbox opens the outbox, or begins one whose first number is next. Lines that a power cut took from us while the
// server already had them leave a gap, which is jumped, for the server ignores numbers it has.
func openOutbox(dir string, next int64, attempt int) (*outbox, error) {
	f, err := ownCopy(filepath.Join(dir, outboxFile))
	if err != nil {
		return nil, fmt.Errorf("open outbox: %w", err)
	}
	o := &outbox{file: f, first: max(next, 1), grown: make(chan struct{}, 1)}
	o.next, o.owed, o.at.Attempt = o.first, o.first, max(attempt, 1)
	if err := o.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("read outbox: %w", err), f.Close())
	}
	if o.next < next {
		if err := o.restart(next); err != nil {
			return nil, errors.Join(fmt.Errorf("renew outbox: %w", err), f.Close())
		}
	}
	return o, nil
}

// ownCopy opens a file that only we write: an agent that we replace, and that does not know yet, goes on writing into the
// file that it has open. On a full disk there is no room for that, and the end of the job is worth more.
func ownCopy(path string) (*os.File, error) {
	old, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := old.Stat()
	if err != nil || info.Size() == 0 {
		return old, err
	}
	ours, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return old, ignoreDiskFull(err)
	}
	if _, err = io.Copy(ours, old); err == nil {
		err = ours.Sync() // before it takes the old one's place
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		_ = errors.Join(ours.Close(), os.Remove(path+".new"))
		if _, seek := old.Seek(0, io.SeekStart); seek != nil {
			return nil, errors.Join(err, seek)
		}
		return old, ignoreDiskFull(err)
	}
	if _, err := ours.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return ours, old.Close()
}

func ignoreDiskFull(err error) error {
	if isDiskFull(err) {
		return nil
	}
	return err
}

// load reads what is there and cuts off a line that was not written to its end.
func (o *outbox) load() error {
	r := bufio.NewReaderSize(o.file, 256<<10)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return o.file.Truncate(o.size)
		}
		if err != nil {
			return err
		}
		var rec record
		if json.Unmarshal(line, &rec) != nil || rec.Seq <= 0 || o.size > 0 && rec.Seq != o.next {
			return o.file.Truncate(o.size)
		}
		if o.size == 0 {
			o.first, o.next = rec.Seq, rec.Seq
		}
		o.note(rec, int64(len(line)))
	}
}

// note takes a record into account that lies at the end of the file.
func (o *outbox) note(rec record, n int64) {
	if rec.Attempt != o.at.Attempt {
		o.result, o.failed = nil, nil
	}
	o.at = position{Attempt: rec.Attempt, Offset: rec.Offset}
	o.count(n)
	if rec.Event.Source != agentSource {
		o.owed = o.next
	}
	switch rec.Event.Event {
	case api.EventResult:
		o.result = &rec.Event
	case api.EventError:
		o.failed = &rec.Event
	}
}

// count takes a line of n bytes into account that lies at the end of the file.
func (o *outbox) count(n int64) {
	if (o.next-o.first)%indexEvery == 0 {
		o.index = append(o.index, o.size)
	}
	o.next, o.size = o.next+1, o.size+n
}

// restart begins the file anew at a higher number, without losing the place in the worker's files.
func (o *outbox) restart(next int64) error {
	if err := o.file.Truncate(0); err != nil {
		return err
	}
	o.size, o.index, o.first, o.next, o.owed = 0, nil, next, next, next
	return o.append(record{Attempt: o.at.Attempt, Offset: o.at.Offset, Event: logEvent("warning", "The agent went on after its machine had lost some of its notes")})
}

// append numbers the records and writes them. After an error nothing of them is there.
func (o *outbox) append(recs ...record) error {
	if len(recs) == 0 {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	ends := make([]int, len(recs))
	for i := range recs {
		recs[i].Seq = o.next + int64(i)
		if err := enc.Encode(recs[i]); err != nil {
			return fmt.Errorf("write outbox: %w", err)
		}
		ends[i] = buf.Len()
	}
	if err := o.write(buf.Bytes()); err != nil {
		return err
	}
	began := 0
	for i, rec := range recs {
		o.note(rec, int64(ends[i]-began))
		began = ends[i]
	}
	return nil
}

// remark appends a line of the agent's own log, at any time and from any goroutine. It leaves the place in the worker's
// files as it is.
func (o *outbox) remark(e api.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.sealed {
		return nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(record{Seq: o.next, Attempt: o.at.Attempt, Offset: o.at.Offset, Event: e}); err != nil {
		return fmt.Errorf("write outbox: %w", err)
	}
	if err := o.write(buf.Bytes()); err != nil {
		return err
	}
	o.count(int64(buf.Len()))
	return nil
}

// seal ends the agent's own log. With hush, what of it was not sent yet is not sent any more.
func (o *outbox) seal(hush bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sealed, o.hushed = true, hush
}

// write writes lines at the end of the file, whole or not at all, and wakes the reader, who has to wait for the lock.
func (o *outbox) write(lines []byte) error {
	if _, err := o.file.WriteAt(lines, o.size); err != nil {
		return errors.Join(fmt.Errorf("write outbox: %w", err), o.file.Truncate(o.size))
	}
	select {
	case o.grown <- struct{}{}:
	default:
	}
	return nil
}

// read returns a batch of events from the number on. A number before the first one asks for what we never had.
func (o *outbox) read(from int64) ([]api.Event, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	from = max(from, o.first)
	if from >= o.next || o.hushed && from >= o.owed {
		return nil, nil
	}
	seq, at := o.readSeq, o.readAt
	if seq > from || seq == 0 || from-seq > indexEvery {
		block := (from - o.first) / indexEvery
		seq, at = o.first+block*indexEvery, o.index[block]
	}
	r := bufio.NewReaderSize(io.NewSectionReader(o.file, at, o.size-at), 64<<10)
	var batch []api.Event
	for bytes := 0; seq < o.next && len(batch) < maxEvents; seq++ {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("read outbox: %w", err)
		}
		if seq >= from {
			if bytes += len(line); bytes > maxBatch && len(batch) > 0 {
				break
			}
			var rec record
			if err := json.Unmarshal(line, &rec); err != nil {
				return nil, fmt.Errorf("read outbox: %w", err)
			}
			rec.Event.Seq, rec.Event.Attempt = rec.Seq, rec.Attempt
			batch = append(batch, rec.Event)
		}
		at += int64(len(line))
	}
	o.readSeq, o.readAt = seq, at
	return batch, nil
}

// end is the number after the last event.
func (o *outbox) end() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.next
}

// needed is the number after the last event that the server must have before it hears of the end.
func (o *outbox) needed() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.owed
}

func (o *outbox) close() error { return o.file.Close() }
