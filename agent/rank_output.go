package agent

import (
	"bytes"
	"io"
	"sync"
)

// lockedWriter lets several ranks write to one place.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}

// prefixer puts a prefix before every line. A line is written whole, by one Write; one without an end is cut.
type prefixer struct {
	w      io.Writer
	prefix string
	line   []byte
}

const longestLine = 16 << 10

func (p *prefixer) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		end := bytes.IndexByte(b, '\n') + 1
		if end == 0 {
			end = len(b)
		}
		end = min(end, longestLine-len(p.line))
		p.line, b = append(p.line, b[:end]...), b[end:]
		if p.line[len(p.line)-1] == '\n' || len(p.line) == longestLine {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// flush writes what there is as a line.
func (p *prefixer) flush() error {
	if len(p.line) == 0 {
		return nil
	}
	out := append([]byte(p.prefix), bytes.TrimSuffix(p.line, []byte("\n"))...)
	p.line = p.line[:0]
	_, err := p.w.Write(append(out, '\n'))
	return err
}
