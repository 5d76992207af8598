package handlers

import (
	"bufio"
	"encoding/csv"
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
	line []byte      // of ndjson, reused
	csv  *csv.Writer // nil for ndjson
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
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Disposition", attachment(name+"."+format))
	w.WriteHeader(http.StatusOK)
	return e
}

func (e *export) row(p api.PredictionRow) error {
	var err error
	if e.csv == nil {
		if e.line, err = p.AppendJSON(e.line[:0]); err == nil {
			_, err = e.buf.Write(append(e.line, '\n'))
		}
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
		label = listed(p.Payload.Labels)
	}
	target := ""
	switch {
	case p.Payload.Labels != nil && p.Target != nil && p.Correct != nil:
		target = listed(p.Target)
	case len(p.Target) > 0:
		target = p.Target[0]
	}
	e.cell = append(e.cell[:0], harmless(p.InstanceID), harmless(p.SchemaName), p.Split, harmless(label), figure(p.Confidence),
		harmless(target), truth(p.Correct), harmless(p.Text), "")
	if len(p.Payload.Scores) > 0 {
		if scores, err := api.AppendScores(nil, p.Payload.Scores); err == nil { // none is NaN: they were checked
			e.cell[len(e.cell)-1] = string(scores)
		}
	}
}

// harmless keeps a spreadsheet from taking text for a formula.
func harmless(s string) string {
	s = escapeHalves(s)
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

func listed(texts []string) string { return string(api.AppendStrings(nil, texts)) }
