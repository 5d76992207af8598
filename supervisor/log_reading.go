package supervisor

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"potato/api"
)

// LogSource names one of a run's logs.
type LogSource string

// The logs of a run: the log events, and the files of those names.
const (
	LogEvents LogSource = "log"
	LogStdout LogSource = "stdout"
	LogStderr LogSource = "stderr"
	LogAgent  LogSource = "agent"
)

// LogQuery asks for a stretch of a log: Limit lines from line From (from 1; 0 means the last Limit lines), of those that
// contain Q, whatever the case, when it is set. Line numbers are those of the whole log.
type LogQuery struct {
	Source LogSource
	From   int64
	Limit  int
	Q      string
}

const maxLogLine = 64 << 10 // what is shown of one line

// Log reads a stretch of a run's log.
func (s *Supervisor) Log(ctx context.Context, id api.RunID, q LogQuery) (api.LogLines, error) {
	if _, err := s.db.RunByID(ctx, id); err != nil {
		return api.LogLines{}, err
	}
	name, read := eventsFile, logEventLine
	switch q.Source {
	case LogEvents, "":
	case LogStdout, LogStderr, LogAgent:
		name, read = string(q.Source)+".log", plainLine
	default:
		return api.LogLines{}, api.Invalidf("bad_source", "there is no log %q", q.Source).
			WithHint("log, stdout, stderr or agent")
	}
	if q.Limit <= 0 {
		q.Limit = 1000
	}
	lines, err := readLog(ctx, s.folder(id).file(name), q, read)
	if err != nil {
		return api.LogLines{}, fmt.Errorf("read %s of run %s: %w", name, id, err)
	}
	return lines, nil
}

// readLog goes through the file once. Only the lines of the answer are decoded.
func readLog(ctx context.Context, path string, q LogQuery, read func(line []byte, decode bool) (api.LogLine, bool)) (api.LogLines, error) {
	out := api.LogLines{Lines: []api.LogLine{}}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	defer f.Close() //nolint:errcheck // only read from
	want := bytes.ToLower([]byte(q.Q))
	in := bufio.NewReaderSize(f, 256<<10)
	var last [][]byte // the latest Limit lines, as a ring, when no first line is asked for
	var lastN []int64
	for n := int64(0); ; {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, err
		}
		if _, ok := read(line, false); !ok {
			continue
		}
		n++
		if n%10_000 == 0 && ctx.Err() != nil {
			return out, ctx.Err()
		}
		if q.Q != "" && !logLineContains(line, want, read) {
			continue
		}
		out.Total++
		if q.From > 0 {
			if n >= q.From && len(out.Lines) < q.Limit {
				l, _ := read(line, true)
				l.N = n
				out.Lines = append(out.Lines, l)
			}
			continue
		}
		if len(last) < q.Limit {
			last, lastN = append(last, bytes.Clone(line)), append(lastN, n)
			continue
		}
		i := int((out.Total - 1) % int64(q.Limit))
		last[i], lastN[i] = append(last[i][:0], line...), n
	}
	for i := range last {
		at := i
		if out.Total > int64(len(last)) {
			at = int((out.Total + int64(i)) % int64(len(last)))
		}
		l, _ := read(last[at], true)
		l.N = lastN[at]
		out.Lines = append(out.Lines, l)
	}
	return out, nil
}

// readLine reads a line without its end and without the part that is over the limit. The bytes are good until the next.
func readLine(in *bufio.Reader) ([]byte, error) {
	line, err := in.ReadSlice('\n')
	if err == nil {
		return bytes.TrimRight(line, "\r\n"), nil
	}
	kept := bytes.Clone(line)
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = in.ReadSlice('\n')
	}
	if err != nil && (!errors.Is(err, io.EOF) || len(kept) == 0) {
		return nil, err
	}
	return bytes.TrimRight(kept, "\r\n"), nil // the last line may still be without an end
}

func logLineContains(line, want []byte, read func([]byte, bool) (api.LogLine, bool)) bool {
	if l, ok := read(line, true); ok {
		return bytes.Contains(bytes.ToLower([]byte(l.Text)), want)
	}
	return false
}

func plainLine(line []byte, decode bool) (api.LogLine, bool) {
	if !decode {
		return api.LogLine{}, true
	}
	if len(line) > maxLogLine {
		line = append(bytes.Clone(line[:maxLogLine]), "…"...)
	}
	return api.LogLine{Text: strings.ToValidUTF8(string(line), "\uFFFD")}, true
}

// logEventLine is a line for log and error events; all others are none.
func logEventLine(line []byte, decode bool) (api.LogLine, bool) {
	isLog := bytes.Contains(line, []byte(`"event":"log"`))
	if !isLog && !bytes.Contains(line, []byte(`"event":"error"`)) {
		return api.LogLine{}, false
	}
	if !decode {
		return api.LogLine{}, true
	}
	var e api.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return api.LogLine{Level: "error", Text: "this line of events.jsonl cannot be read"}, true
	}
	if e.Event == api.EventError {
		return api.LogLine{T: e.T, Level: "error", Text: e.Message}, true
	}
	return api.LogLine{T: e.T, Level: e.Level, Text: e.Msg}, true
}
