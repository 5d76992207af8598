package agent

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"potato/api"
)

// parseLine reads one line of a worker's events file. What it cannot read becomes a warning in the log, so that no line
// is passed over in silence.
func parseLine(line []byte) api.Event {
	e, err := decodeEvent(line)
	if err != nil {
		return badLine(line, err)
	}
	return bounded(e)
}

func decodeEvent(line []byte) (api.Event, error) {
	var e api.Event
	err := json.Unmarshal(line, &e)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		// Python's json writes what other parsers refuse: NaN and Infinity.
		if mended := withoutNaN(line); mended != nil {
			e = api.Event{}
			err = json.Unmarshal(mended, &e)
		}
	}
	if err != nil {
		return e, err
	}
	switch e.Event {
	case api.EventStatus, api.EventProgress, api.EventMetric, api.EventLog, api.EventArtifact, api.EventResult, api.EventError:
		return e, nil
	case "":
		return e, errors.New("it names no event")
	default:
		return e, fmt.Errorf("its event is unknown: %s", cut(clean([]byte(e.Event)), 40))
	}
}

func badLine(line []byte, err error) api.Event {
	return logEvent("warning", fmt.Sprintf("The worker wrote a line of %d bytes that is no event (%v): %s", len(line), err, cut(clean(line), 200)))
}

func logEvent(level, msg string) api.Event {
	return api.Event{V: 1, Event: api.EventLog, T: now(), Level: level, Msg: msg}
}

func now() float64 { return float64(time.Now().UnixMicro()) / 1e6 }

// withoutNaN replaces the words NaN, Infinity and -Infinity outside of strings by null; nil when there are none.
func withoutNaN(line []byte) []byte {
	var out []byte
	inString := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case inString && c == '\\' && i+1 < len(line):
			out = append(out, c)
			i++
			c = line[i]
		case c == '"':
			inString = !inString
		case !inString:
			if n := notNumber(line[i:]); n > 0 {
				out = append(out, "null"...)
				i += n - 1
				continue
			}
		}
		out = append(out, c)
	}
	if bytes.Equal(out, line) {
		return nil
	}
	return out
}

func notNumber(b []byte) int {
	for _, word := range []string{"NaN", "Infinity", "-Infinity"} {
		if bytes.HasPrefix(b, []byte(word)) {
			return len(word)
		}
	}
	return 0
}

// bounded makes an event safe to send and show: its texts clean, the whole no longer than an event may be. What makes
// a result too long are figures that the server can do without; the result itself always comes through.
func bounded(e api.Event) api.Event {
	e.V, e.Seq, e.Attempt, e.Source = 1, 0, 0, ""
	texts := []*string{
		&e.State, &e.Phase, &e.Split, &e.Name, &e.Schema, &e.Level, &e.Msg, &e.Path, &e.Status, &e.ModelVersion, &e.PredictionsFile, &e.Device,
		&e.Python, &e.Code, &e.Message, &e.InstallHint,
	}
	for _, s := range texts {
		*s = cut(clean([]byte(*s)), maxText)
	}
	if e.State == api.StatePending { // a worker that speaks does not wait for a scheduler
		e.State = "running"
	}
	if s, ok := e.Step.(string); ok {
		e.Step = cut(clean([]byte(s)), 1000)
	}
	if jsonLen(e) <= api.MaxEventBytes {
		return e
	}
	if e.Event != api.EventResult {
		return logEvent("warning", fmt.Sprintf("The worker wrote a %s event of more than %d bytes, which was left out", e.Event, api.MaxEventBytes))
	}
	drop := []func(){
		func() { e.LabelOrder = nil }, func() { e.MetricsBySchema = nil }, func() { e.Packages = nil }, func() { e.Metrics = nil },
		func() {
			e.ModelVersion, e.Device, e.Python, e.Code, e.Message, e.InstallHint, e.Msg, e.Step = "", "", "", "", "", "", "", nil
		},
	}
	e.Notes = []string{"The worker's result was longer than an event may be, so parts of it were left out"}
	for _, f := range drop {
		if jsonLen(e) <= api.MaxEventBytes {
			break
		}
		f()
	}
	return e
}

func jsonLen(e api.Event) int {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if enc.Encode(e) != nil {
		return api.MaxEventBytes + 1
	}
	return buf.Len()
}
