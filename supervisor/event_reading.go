package supervisor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"
	"strconv"

	"potato/api"
)

// readEvents hands over the events after a sequence number, in order, until emit says that it has enough. A last line
// that is still being written is not there yet.
func readEvents(path string, after int64, emit func(api.Event) (more bool)) error {
	return (&eventCursor{path: path, seq: after}).read(emit)
}

// eventCursor reads a run's events piece by piece: each time those that have come since.
type eventCursor struct {
	path string
	seq  int64 // of the last event that was handed over
	at   int64 // where the line after it begins; 0: to be searched for
}

// read is readEvents from where the cursor is.
func (c *eventCursor) read(emit func(api.Event) (more bool)) error {
	f, err := os.Open(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the run's events: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	at, err := c.start(f)
	if err != nil {
		return fmt.Errorf("read the run's events: %w", err)
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return fmt.Errorf("read the run's events: %w", err)
	}
	lines := bufio.NewReaderSize(f, 16<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the run's events: %w", err)
		}
		at += int64(len(line))
		seq := seqOf(line)
		if seq <= c.seq {
			continue
		}
		var e api.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read event %d: %w", seq, err)
		}
		c.seq, c.at = seq, at
		if !emit(e) {
			return nil
		}
	}
}

// start is where to read from. A file that was cut since, for what could not be kept, may have another line there.
func (c *eventCursor) start(f *os.File) (int64, error) {
	if c.at > 0 {
		head := make([]byte, 64)
		n, err := f.ReadAt(head, c.at-1)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if n > 0 && head[0] == '\n' && (n == 1 || seqOf(head[1:n]) > c.seq) {
			return c.at, nil
		}
	}
	return findSeq(f, c.seq)
}

// findSeq returns the start of a line from which on all events after the sequence number are found. Numbers only grow,
// so half of the file at a time can be left out.
func findSeq(f *os.File, after int64) (int64, error) {
	if after <= 0 {
		return 0, nil
	}
	st, err := f.Stat()
	if err != nil {
		return 0, err
	}
	const block = 64 << 10
	blocks := int(st.Size() / block)
	buf := make([]byte, 2*api.MaxEventBytes)
	// The first block whose first whole line is past the number; the lines wanted begin in the block before it.
	past := sort.Search(blocks, func(i int) bool {
		n, err := f.ReadAt(buf, int64(i+1)*block)
		if err != nil && !errors.Is(err, io.EOF) {
			return true
		}
		_, rest, ok := bytes.Cut(buf[:n], []byte{'\n'})
		return !ok || seqOf(rest) > after || seqOf(rest) == 0
	})
	if past == 0 {
		return 0, nil
	}
	at := int64(past) * block
	n, err := f.ReadAt(buf, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	i := bytes.IndexByte(buf[:n], '\n')
	if i < 0 {
		return 0, nil // a line longer than any event of ours: read it all
	}
	return at + int64(i) + 1, nil
}

// seqOf reads the number at the beginning of a line; 0 when there is none.
func seqOf(line []byte) int64 {
	rest, ok := bytes.CutPrefix(line, []byte(`{"seq":`))
	if !ok {
		return 0
	}
	digits, _, _ := bytes.Cut(rest, []byte{','})
	n, err := strconv.ParseInt(string(digits), 10, 64)
	if err != nil {
		return 0
	}
	return n
}
