package agentcmd

import (
	"io"
	"os"
	"strings"
	"sync"
	"unicode"

	"golang.org/x/sys/unix"

	"potato/api"
)

const clearLine = "\r\x1b[K"

// screen is where the log goes. On a terminal its last line says what the agent is doing, and is always the last one.
type screen struct {
	w     io.Writer
	width func() int // 0: no terminal

	mu   sync.Mutex
	line string
}

func newScreen(w io.Writer) *screen {
	return &screen{w: w, width: func() int {
		f, ok := w.(*os.File)
		if !ok {
			return 0
		}
		size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
		if err != nil || os.Getenv("TERM") == "dumb" {
			return 0
		}
		return int(size.Col)
	}}
}

// Write implements io.Writer for the log, a line or more at a time.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line == "" {
		return s.w.Write(p)
	}
	if _, err := s.w.Write([]byte(clearLine + string(p) + s.line)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// report replaces the last line.
func (s *screen) report(run api.RunID, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	width := s.width()
	if width < 2 {
		return
	}
	if run != "" {
		text = string(run) + "  " + text
	}
	s.line = shown(text, width-1)
	_, _ = io.WriteString(s.w, clearLine+s.line) // nobody is left to be told
}

func (s *screen) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.line != "" {
		_, _ = io.WriteString(s.w, clearLine) // nobody is left to be told
		s.line = ""
	}
}

// shown is a text fit for one line of a terminal, whoever wrote it.
func shown(text string, width int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > width {
		return string(runes[:width-1]) + "…"
	}
	return text
}
