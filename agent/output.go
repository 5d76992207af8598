package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// output reads what the worker printed, in pieces of whole lines.
func (f *follower) output(name string, at *int64, final bool) (recs []record, more bool, err error) {
	if f.at.Offset.Logged >= f.logLimit {
		return nil, false, nil
	}
	file, err := os.Open(filepath.Join(f.dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("follow %s: %w", name, err)
	}
	defer file.Close() //nolint:errcheck // only read from
	info, err := file.Stat()
	if err != nil {
		return nil, false, fmt.Errorf("follow %s: %w", name, err)
	}
	if info.Size() < *at { // begun anew
		*at = 0
	}
	buf := make([]byte, min(maxText, info.Size()-*at))
	for read := 0; *at < info.Size() && read < readPerTurn; {
		n, err := readAt(file, buf[:min(int64(len(buf)), info.Size()-*at)], *at)
		if err != nil || n == 0 {
			return recs, false, err
		}
		n = pieceLen(buf[:n], final && *at+int64(n) == info.Size())
		if n == 0 {
			return recs, false, nil
		}
		*at += int64(n)
		read += n
		text := bytes.TrimSuffix(bytes.TrimSuffix(buf[:n], []byte("\n")), []byte("\r"))
		e := logEvent("info", clean(text))
		e.Source = name[:len(name)-len(".log")]
		if e, ok := f.limit(e); ok {
			recs = append(recs, f.record(e))
		}
		if f.at.Offset.Logged >= f.logLimit {
			return recs, false, nil
		}
	}
	return recs, *at < info.Size(), nil
}

// pieceLen is how much of b makes a piece: up to the last end of line; all of it when it is full or the last.
func pieceLen(b []byte, last bool) int {
	if last {
		return len(b)
	}
	if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
		return i + 1
	}
	// A progress bar goes back to the line's begin. At the end it may be the first half of \r\n.
	if i := bytes.LastIndexByte(b[:max(0, len(b)-1)], '\r'); i >= 0 {
		return i + 1
	}
	if len(b) == maxText {
		return runeBorder(b, len(b)-1)
	}
	return 0
}

// readAt fills as much of b as the file has; a file that has become shorter meanwhile is no error.
func readAt(file *os.File, b []byte, at int64) (int, error) {
	n, err := file.ReadAt(b, at)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
