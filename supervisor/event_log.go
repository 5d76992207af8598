package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"potato/api"
	"potato/store"
)

// eventLog appends what an agent reports to the files of the run's folder: events to events.jsonl, lines of output to the
// file of their source. The database remembers how far each file was whole, so that after a crash the agent's repetition
// meets exactly what is there.
type eventLog struct {
	dir  folder
	size atomic.Int64 // of events.jsonl, as far as it was kept

	mu    sync.Mutex
	files map[string]*os.File
	got   store.Received
}

// openEventLog goes on with a run's files and cuts off what was written and not remembered.
func openEventLog(dir folder, got *store.Received) (*eventLog, error) {
	l := &eventLog{dir: dir, files: map[string]*os.File{}, got: store.Received{NextSeq: 1, Bytes: map[string]int64{}}}
	if got != nil {
		l.got = *got
	}
	for _, name := range []string{eventsFile, stdoutFile, stderrFile, agentFile} {
		f, err := os.OpenFile(dir.file(name), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), l.close())
		}
		l.files[name] = f
		size, err := f.Seek(0, io.SeekEnd)
		if err == nil && size > l.got.Bytes[name] {
			err = f.Truncate(l.got.Bytes[name])
		} else if err == nil {
			l.got.Bytes[name] = size // a power cut took what was not synced
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open %s: %w", name, err), l.close())
		}
	}
	l.size.Store(l.got.Bytes[eventsFile])
	return l, nil
}

func (l *eventLog) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for _, f := range l.files {
		err = errors.Join(err, f.Close())
	}
	l.files = map[string]*os.File{}
	return err
}

// nextSeq is the number of the next event that the agent has to tell, counted without those of the server's own.
func (l *eventLog) nextSeq() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got.NextSeq - l.got.Own
}

// append writes those events that continue the log, ignores those it has, and stops at a gap. keep stores how far it came,
// together with what the events changed; when it fails, the files are as before.
func (l *eventLog) append(events []api.Event, keep func(fresh []api.Event, got store.Received) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.appendLocked(events, 0, keep)
}

// say appends an event of the server's own. The agent may speak at the same time: in the log the two share one line of
// numbers, and the agent's are counted without the server's.
func (l *eventLog) say(e api.Event, keep func([]api.Event, store.Received) error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.V, e.Seq = 1, l.got.NextSeq-l.got.Own
	return l.appendLocked([]api.Event{e}, 1, keep)
}

// appendLocked appends events numbered as the agent counts, own of which are the server's.
func (l *eventLog) appendLocked(events []api.Event, own int64, keep func([]api.Event, store.Received) error) error {
	got := store.Received{NextSeq: l.got.NextSeq, Own: l.got.Own + own, Bytes: map[string]int64{}}
	pending := map[string][]byte{}
	var fresh []api.Event
	for _, e := range events {
		if e.Seq != got.NextSeq-l.got.Own {
			continue
		}
		e.Seq = got.NextSeq
		got.NextSeq++
		fresh = append(fresh, e)
		name, line, err := eventLine(e)
		if err != nil {
			return err
		}
		pending[name] = append(pending[name], l.within(name, len(pending[name]), line, e)...)
	}
	if len(fresh) == 0 {
		return nil
	}
	for name, size := range l.got.Bytes {
		got.Bytes[name] = size
	}
	for name, b := range pending {
		if _, err := l.files[name].WriteAt(b, l.got.Bytes[name]); err != nil {
			return l.undo(fmt.Errorf("write %s: %w", name, err))
		}
		got.Bytes[name] = l.got.Bytes[name] + int64(len(b))
	}
	if err := keep(fresh, got); err != nil {
		return l.undo(err)
	}
	l.got = got
	l.size.Store(got.Bytes[eventsFile])
	return nil
}

// within keeps a file below its limit: past it lines of logs and curves are dropped, after one that says so.
func (l *eventLog) within(name string, pending int, line []byte, e api.Event) []byte {
	switch e.Event {
	case api.EventLog, api.EventMetric, api.EventProgress:
	default:
		return line
	}
	at := l.got.Bytes[name] + int64(pending)
	if at+int64(len(line)) <= api.MaxLogBytes {
		return line
	}
	if at > api.MaxLogBytes {
		return nil
	}
	note := fmt.Sprintf("this log is cut here: it is over %d MB", api.MaxLogBytes>>20)
	if name != eventsFile {
		return append(line, note+"\n"...)
	}
	_, cut, err := eventLine(api.Event{V: 1, Event: api.EventLog, T: e.T, Seq: e.Seq, Level: "warning", Msg: note})
	if err != nil {
		return nil
	}
	// Blanks take the file over its limit, so that this is said once.
	pad := max(api.MaxLogBytes-at-int64(len(cut))+1, 0)
	return append(append(cut[:len(cut)-1], bytes.Repeat([]byte{' '}, int(pad))...), '\n')
}

// undo takes the files back to where they were.
func (l *eventLog) undo(err error) error {
	for name, f := range l.files {
		err = errors.Join(err, f.Truncate(l.got.Bytes[name]))
	}
	if isDiskFull(err) {
		return store.DiskFull(err)
	}
	return err
}

// eventLine tells the file that an event belongs to and its line there. In events.jsonl the sequence number comes first:
// a reader finds its place without decoding.
func eventLine(e api.Event) (string, []byte, error) {
	if e.Event == api.EventLog {
		switch e.Source {
		case "stdout":
			return stdoutFile, append([]byte(e.Msg), '\n'), nil
		case "stderr":
			return stderrFile, append([]byte(e.Msg), '\n'), nil
		case "agent":
			return agentFile, append([]byte(e.Msg), '\n'), nil
		}
	}
	seq := e.Seq
	e.Seq = 0
	b, err := encodeEvent(e)
	if err == nil && len(b) > api.MaxEventBytes && e.Event != api.EventResult {
		b, err = encodeEvent(shortened(e, len(b)))
	}
	if err != nil {
		return "", nil, fmt.Errorf("encode event %d: %w", seq, err)
	}
	line := append([]byte(`{"seq":`), strconv.FormatInt(seq, 10)...)
	line = append(append(line, ','), b[1:]...)
	return eventsFile, append(line, '\n'), nil
}

// encodeEvent leaves <, > and & as they are: escaped, a log of HTML would be six times as long.
func encodeEvent(e api.Event) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(e)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// shortened keeps the beginning of an event's text and says what became of the rest.
func shortened(e api.Event, size int) api.Event {
	text := e.Msg + e.Message
	if len(text) > 4000 {
		text = text[:4000]
	}
	text += fmt.Sprintf(" … (cut: the event had %d bytes)", size)
	c := api.Event{V: e.V, Event: e.Event, T: e.T, Attempt: e.Attempt, Level: e.Level, Code: e.Code}
	switch e.Event {
	case api.EventError:
		c.Message = text
	case api.EventStatus:
		c.Step = text
	default:
		c.Event, c.Level, c.Msg = api.EventLog, "warning", text
	}
	return c
}
