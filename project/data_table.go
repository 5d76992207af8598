package project

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// tableLayout is how a CSV or TSV file is written.
type tableLayout struct {
	delimiter byte
	quotes    bool
	columns   []string
}

func (t tableLayout) column(name string) int {
	// As in Python's DictReader, the last of two columns with one name wins.
	for i := len(t.columns) - 1; i >= 0; i-- {
		if t.columns[i] == name {
			return i
		}
	}
	return -1
}

// delimiters are tried in this order until one gives a header with the id's column. Spreadsheets write semicolons where the comma
// is the decimal sign.
var delimiters = []byte{',', ';', '\t'}

// indexTable reads a CSV or TSV file. Cells are texts as they are written: 007 stays 007.
func (f *dataFile) indexTable(p *filePart, r io.Reader, from int64) error {
	s := &recordScanner{r: r, quotes: f.format == formatCSV, delimiter: '\t'}
	if s.quotes {
		s.delimiter = ','
	}
	header, err := s.next()
	for err == nil && len(header.bytes) == 0 {
		header, err = s.next()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return f.tableProblem(err, s)
	}
	if f.table, err = f.layout(header.bytes); err != nil {
		return err
	}
	s.delimiter = f.table.delimiter
	idColumn, textColumn := f.table.column(f.idKey), f.table.column(f.textKey)
	w := &idWriter{part: p}
	defer w.flush()
	var cells []string
	for {
		rec, err := s.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f.tableProblem(err, s)
		}
		if len(rec.bytes) == 0 {
			continue
		}
		cells = f.table.split(cells[:0], rec.bytes)
		if len(cells) > len(f.table.columns) {
			return f.problem(rec.line, "the row has %d cells but the header has %d", len(cells), len(f.table.columns)).
				WithHint("put cells that hold a %q in double quotes", f.table.delimiter)
		}
		id := ""
		if idColumn < len(cells) {
			id = cells[idColumn]
		}
		if strings.TrimSpace(id) == "" {
			return f.withoutID(rec.line)
		}
		it := item{off: from + rec.off, n: uint32(len(rec.bytes))}
		if textColumn < 0 {
			p.missingText(f, it.off)
		}
		w.add(id, it)
	}
	if s.openQuote > 0 {
		p.warnings = append(p.warnings, fmt.Sprintf("%s line %d: a double quote is opened and never closed; all that follows was read as one cell", f.name, s.openQuote))
	}
	return nil
}

// layout reads the header.
func (f *dataFile) layout(header []byte) (tableLayout, error) {
	if f.format == formatTSV {
		t := tableLayout{delimiter: '\t'}
		t.columns = slices.Clone(t.split(nil, header))
		if t.column(f.idKey) >= 0 {
			return t, nil
		}
		return t, f.withoutColumn(t.columns)
	}
	var first []string
	for _, d := range delimiters {
		t := tableLayout{delimiter: d, quotes: true}
		t.columns = slices.Clone(t.split(nil, header))
		if t.column(f.idKey) >= 0 {
			return t, nil
		}
		if first == nil {
			first = t.columns
		}
	}
	return tableLayout{}, f.withoutColumn(first)
}

func (f *dataFile) withoutColumn(columns []string) error {
	return f.problem(1, "no column is named %q; there are %s", f.idKey, quoteAll(columns, 12)).
		WithHint("set item_properties.id_key to the column that holds the ids, or name the column so")
}

// quoteAll lists names for people, at most n of them.
func quoteAll(names []string, n int) string {
	var b strings.Builder
	for i, name := range names {
		if i == n {
			fmt.Fprintf(&b, " and %d more", len(names)-n)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", name)
	}
	return b.String()
}

func (f *dataFile) tableProblem(err error, s *recordScanner) error {
	if errors.Is(err, errRecordTooLong) {
		return f.problem(s.line, "a row of more than %d MB begins here", maxRecord>>20).
			WithHint("look for a double quote that is not closed")
	}
	return f.jsonProblem(err, s.line)
}

// split cuts a row into its cells and appends them to dst.
func (t tableLayout) split(dst []string, rec []byte) []string {
	if !t.quotes {
		for cell := range strings.SplitSeq(string(rec), string(t.delimiter)) {
			dst = append(dst, cell)
		}
		return dst
	}
	i := 0
	for {
		if i < len(rec) && rec[i] == '"' {
			var cell []byte
			cell, i = unquoteCell(rec, i+1, t.delimiter)
			dst = append(dst, string(cell))
		} else {
			from := i
			for i < len(rec) && rec[i] != t.delimiter {
				i++
			}
			dst = append(dst, string(rec[from:i]))
		}
		if i >= len(rec) {
			return dst
		}
		i++ // the delimiter
	}
}

// unquoteCell reads a quoted cell as Python's csv module does: what follows the closing quote belongs to the cell.
func unquoteCell(rec []byte, i int, delimiter byte) ([]byte, int) {
	var cell []byte
	quoted := true
	for i < len(rec) {
		c := rec[i]
		switch {
		case quoted && c == '"':
			if i+1 < len(rec) && rec[i+1] == '"' {
				cell = append(cell, '"')
				i++
			} else {
				quoted = false
			}
		case !quoted && c == delimiter:
			return cell, i
		default:
			cell = append(cell, c)
		}
		i++
	}
	return cell, i
}
