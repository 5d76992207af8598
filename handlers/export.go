package handlers

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"potato/api"
)

// export writes predictions one by one, so that a million of them take no more memory than one.
type export struct {
	out  *sink
	buf  *bufio.Writer
	json *json.Encoder
	csv  *csv.Writer
	cell []string
	gone bool // a write failed: the client has left
}

// sink remembers whether a write failed, which the writers above it tell apart from nothing else.
type sink struct {
	io.Writer
	failed bool
}

func (s *sink) Write(b []byte) (int, error) {
	n, err := s.Writer.Write(b)
	s.failed = s.failed || err != nil
	return n, err
}

var csvColumns = []string{"instance_id", "schema_name", "split", "label", "confidence", "target", "correct", "text", "scores"}

func newExport(w http.ResponseWriter, format, name string) *export {
	e := &export{out: &sink{Writer: w}}
	e.buf = bufio.NewWriterSize(e.out, 64<<10)
	kind := "application/x-ndjson"
	if format == "csv" {
		kind = "text/csv; charset=utf-8; header=present"
		e.csv = csv.NewWriter(e.buf)
		e.cell = make([]string, len(csvColumns))
		_ = e.csv.Write(csvColumns) // into the buffer
	} else {
		e.json = json.NewEncoder(e.buf)
		e.json.SetEscapeHTML(false)
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", attachment(name+"."+format))
	w.WriteHeader(http.StatusOK)
	return e
}

func (e *export) row(p api.PredictionRow) error {
	var err error
	if e.csv == nil {
		err = e.json.Encode(p)
	} else {
		e.fill(p)
		err = e.csv.Write(e.cell)
	}
	e.gone = e.out.failed
	return err
}

func (e *export) close() error {
	if e.csv != nil {
		e.csv.Flush()
		if err := e.csv.Error(); err != nil {
			e.gone = e.out.failed
			return err
		}
	}
	err := e.buf.Flush()
	e.gone = e.out.failed
	return err
}

// fill puts the row into the cells. Several labels, and none of several, are a JSON list.
func (e *export) fill(p api.PredictionRow) {
	label := p.Payload.Label
	if p.Payload.Label == "" && p.Payload.Labels != nil {
		label = asJSON(p.Payload.Labels)
	}
	target := ""
	switch {
	case p.Payload.Labels != nil && p.Target != nil && p.Correct != nil:
		target = asJSON(p.Target)
	case len(p.Target) > 0:
		target = p.Target[0]
	}
	e.cell = append(e.cell[:0], harmless(p.InstanceID), harmless(p.SchemaName), p.Split, harmless(label), figure(p.Confidence),
		harmless(target), truth(p.Correct), harmless(p.Text), "")
	if len(p.Payload.Scores) > 0 {
		e.cell[len(e.cell)-1] = asJSON(p.Payload.Scores)
	}
}

// harmless keeps a spreadsheet from taking text for a formula, and a reader from giving up the file: half a surrogate pair,
// as texts from the web hold it, has no form in UTF-8.
func harmless(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if s != "" && strings.IndexByte("=+-@\t\r", s[0]) >= 0 {
		return "'" + s
	}
	return s
}

func figure(f *float64) string {
	if f == nil {
		return ""
	}
	return strconv.FormatFloat(*f, 'g', -1, 64)
}

func truth(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

func asJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // strings and figures always have a form
	return strings.TrimSuffix(b.String(), "\n")
}
