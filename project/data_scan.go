package project

import (
	"bytes"
	"errors"
	"io"
)

// maxRecord bounds one row, so that a quote that is never closed does not read the file into memory.
const maxRecord = 64 << 20

var errRecordTooLong = errors.New("a row that is too long")

// record is one row of a file, without its line end. Its bytes are valid until the next.
type record struct {
	bytes []byte
	off   int64
	line  int
}

// recordScanner cuts a text into rows at line ends of any kind (\n, \r\n, \r), and with quotes not inside quoted cells.
type recordScanner struct {
	r         io.Reader
	quotes    bool
	delimiter byte
	line      int // of the row that next returned last
	openQuote int // line at which a quote is opened and not closed before the end of the file

	buf   []byte
	pos   int // where the next row begins
	base  int64
	lines int // line ends before pos
	eof   bool
}

func (s *recordScanner) next() (record, error) {
	s.line = s.lines + 1
	end, after, err := s.scan()
	if err != nil {
		return record{}, err
	}
	rec := record{bytes: s.buf[s.pos:end], off: s.base + int64(s.pos), line: s.line}
	s.lines += newlines(s.buf[s.pos:after])
	s.pos = after
	return rec, nil
}

func newlines(b []byte) int {
	n := bytes.Count(b, []byte{'\n'})
	if bytes.IndexByte(b, '\r') < 0 {
		return n
	}
	return n + bytes.Count(b, []byte{'\r'}) - bytes.Count(b, []byte("\r\n"))
}

// cell is where in a row the scanner stands.
type cellState int

const (
	cellStart cellState = iota
	cellPlain
	cellQuoted
	cellQuoteInQuoted
)

// scan finds where the row ends and where the next begins.
func (s *recordScanner) scan() (end, after int, err error) {
	state, quoteAt := cellStart, 0
	for i := s.pos; ; i++ {
		if i == len(s.buf) {
			if i, err = s.more(i, &quoteAt); err != nil {
				return 0, 0, err
			}
			if i == len(s.buf) { // the end of the file
				if i == s.pos {
					return 0, 0, io.EOF
				}
				if state == cellQuoted {
					s.openQuote = s.line + newlines(s.buf[s.pos:quoteAt])
				}
				return i, i, nil
			}
		}
		c := s.buf[i]
		if state == cellQuoted {
			if c == '"' {
				state = cellQuoteInQuoted
			}
			continue
		}
		switch {
		case c == '\n':
			return i, i + 1, nil
		case c == '\r':
			end = i
			if i+1 == len(s.buf) {
				if i, err = s.more(i+1, &quoteAt); err != nil {
					return 0, 0, err
				}
				i--
				end = i
			}
			if i+1 < len(s.buf) && s.buf[i+1] == '\n' {
				return end, i + 2, nil
			}
			return end, i + 1, nil
		case !s.quotes:
		case c == s.delimiter:
			state = cellStart
		case c == '"' && state == cellStart, c == '"' && state == cellQuoteInQuoted:
			if state == cellStart {
				quoteAt = i
			}
			state = cellQuoted
		default:
			state = cellPlain
		}
	}
}

// more reads on while the scanner stands at i, and returns where i is then; it is the end of buf when there is no more.
func (s *recordScanner) more(i int, also *int) (int, error) {
	if s.eof {
		return i, nil
	}
	if drop := s.pos; drop > 0 {
		s.buf = s.buf[:copy(s.buf, s.buf[drop:])]
		s.base += int64(drop)
		s.pos, i = 0, i-drop
		*also -= drop
	}
	if len(s.buf) >= maxRecord {
		return 0, errRecordTooLong
	}
	if cap(s.buf)-len(s.buf) < 32<<10 {
		grown := make([]byte, len(s.buf), 2*cap(s.buf)+64<<10)
		copy(grown, s.buf)
		s.buf = grown
	}
	for range 100 {
		n, err := s.r.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		if errors.Is(err, io.EOF) {
			s.eof = true
			return i, nil
		}
		if err != nil {
			return 0, err
		}
		if n > 0 {
			return i, nil
		}
	}
	return 0, io.ErrNoProgress
}
