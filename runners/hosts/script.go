package hosts

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"potato/api"
)

// Script is POSIX shell to be run on a host. It is sent on standard input to `exec /bin/sh -s`, so that no login shell has
// to understand it and nothing of it shows in a process list.
type Script struct {
	Text   string
	Env    map[string]string // set over what the login shell sets
	Stdin  io.Reader         // what the script reads; nil: nothing. One that is an io.Closer is closed at the end
	Stdout io.Writer         // gets what the script prints as it comes; nil: it is in the answer, up to 16 MB
	Stays  bool              // it goes on when we leave; else what it runs is ended then, where the transport can
}

// Answer is what a script printed, without what login shells and their files print before and after it.
type Answer struct {
	Out    []byte
	Code   int
	Stderr string // its last part
}

const (
	answerMost    = 16 << 20
	complaintMost = 64 << 10
	noiseMost     = 1 << 20 // what a login may print before the answer
)

// Quote makes one word of a text for /bin/sh.
func Quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// text is the script as it is sent. All of it is one function and one list, so that sh has read it to its end before any of
// it runs: what comes after it on standard input is the script's.
func (s Script) text(marker string) string {
	var b strings.Builder
	b.WriteString("umask 077\npotato_script() (\n")
	for _, name := range slices.Sorted(maps.Keys(s.Env)) {
		fmt.Fprintf(&b, "%s=%s; export %s\n", name, Quote(s.Env[name]), name)
	}
	b.WriteString(s.Text)
	in := ""
	if s.Stdin == nil {
		in = " </dev/null"
	}
	fmt.Fprintf(&b, "\n)\n{ printf '\\n%s begin\\n'; potato_script%s; potato_rc=$?; printf '\\n%s\\n' >&2; printf '\\n%s end %%d\\n' \"$potato_rc\"; exit 0; }\n", marker, in, marker, marker)
	return b.String()
}

// Run runs a script and waits for its end. An error means that there is no answer; a script that failed has a Code.
func (c *Conn) Run(ctx context.Context, s Script) (Answer, error) {
	var mark [12]byte
	if _, err := rand.Read(mark[:]); err != nil {
		return Answer{}, err
	}
	marker := "@@potato-" + hex.EncodeToString(mark[:])
	sh, err := c.transport.shell(ctx)
	if err != nil {
		return Answer{}, c.broken(err)
	}
	var over sync.WaitGroup
	defer over.Wait()
	defer sh.close()
	if in, ok := s.Stdin.(io.Closer); ok {
		defer in.Close() //nolint:errcheck // it ends whoever reads from it
	}
	sh.stays = s.Stays
	stop := context.AfterFunc(ctx, sh.close)
	defer stop()

	answer := &bounded{most: answerMost}
	frame := newFrame(marker, io.Writer(answer))
	if s.Stdout != nil {
		frame.to = s.Stdout
	}
	over.Go(func() { s.send(sh, marker, frame) })
	_, err = io.Copy(frame, sh.stdout)
	frame.close()
	if frame.err == nil && !frame.ended {
		sh.rest(ctx)
		return Answer{}, c.unanswered(ctx, sh, frame, err)
	}
	if frame.err != nil {
		return Answer{}, frame.err
	}
	return Answer{Out: answer.kept.Bytes(), Code: frame.code, Stderr: sh.stderr.before(ctx, "\n"+marker+"\n")}, nil
}

// send writes the script and, once it runs, what it reads: a shell that reads ahead would swallow that. What could not be
// sent shows in what the script makes of it.
func (s Script) send(sh *shell, marker string, f *frame) {
	defer sh.stdin.Close() //nolint:errcheck // the other side is told the end, or is gone
	if _, err := io.WriteString(sh.stdin, s.text(marker)); err != nil || s.Stdin == nil {
		return
	}
	select {
	case <-f.begun:
		_, _ = io.Copy(sh.stdin, s.Stdin)
	case <-f.over:
	}
}

// unanswered says why a script has no answer: the connection broke, or what runs at login let no shell run.
func (c *Conn) unanswered(ctx context.Context, sh *shell, f *frame, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	said := lastLine(f.noise.kept.String())
	if text := lastLine(sh.stderr.String()); text != "" {
		said = text
	}
	if !f.running && said != "" && !c.lost() {
		return api.Unavailablef("ssh_auth", "ssh to %s failed: no shell runs there: %s", c.place.target.Host, printable(said)).
			WithHint("the account needs a login shell that runs commands; `ssh %s true` must succeed", c.place.target.Host).WithCause(err)
	}
	return c.broken(errors.Join(errLost, err))
}

// frame takes the script's own output out of what comes from a host: what is between two lines with the marker.
type frame struct {
	marker  string
	to      io.Writer
	begun   chan struct{}
	over    chan struct{}
	noise   bounded
	pending []byte
	running bool
	ended   bool
	code    int
	err     error
}

func newFrame(marker string, to io.Writer) *frame {
	return &frame{marker: marker, to: to, begun: make(chan struct{}), over: make(chan struct{}), noise: bounded{most: noiseMost}}
}

// Write implements io.Writer. It fails once nothing more is of interest.
func (f *frame) Write(p []byte) (int, error) {
	f.pending = append(f.pending, p...)
	if !f.running {
		begin := []byte("\n" + f.marker + " begin\n")
		at := bytes.Index(f.pending, begin)
		if at < 0 {
			f.spill(&f.noise, begin)
			return len(p), nil
		}
		f.running = true
		close(f.begun)
		f.pending = f.pending[at+len(begin):]
	}
	end := []byte("\n" + f.marker + " end ")
	at := bytes.Index(f.pending, end)
	if at < 0 {
		f.spill(f.to, end)
		return len(p), f.err
	}
	rest := f.pending[at+len(end):]
	line := bytes.IndexByte(rest, '\n')
	if line < 0 {
		return len(p), nil
	}
	f.code, _ = strconv.Atoi(string(rest[:line]))
	f.ended = true
	_, f.err = f.to.Write(f.pending[:at])
	return len(p), errEnded
}

var errEnded = errors.New("the answer is complete")

// spill hands on all but what may be the beginning of a mark: whoever waits for an answer must not wait for the next one.
func (f *frame) spill(to io.Writer, mark []byte) {
	n := len(f.pending)
	for keep := min(len(mark)-1, n); keep > 0; keep-- {
		if bytes.HasPrefix(mark, f.pending[n-keep:]) {
			n -= keep
			break
		}
	}
	if n <= 0 {
		return
	}
	if _, err := to.Write(f.pending[:n]); err != nil && f.err == nil {
		f.err = err
	}
	f.pending = append(f.pending[:0], f.pending[n:]...)
}

// close hands on what is left when no end came.
func (f *frame) close() {
	close(f.over)
	if !f.running {
		_, _ = f.noise.Write(f.pending)
	}
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	kept bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), max(0, b.most-b.kept.Len()))])
	return len(p), nil
}

// tail keeps the last bytes that are written to it. It may be read while it is written.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// before is what was written before a mark, which comes within moments.
func (t *tail) before(ctx context.Context, mark string) string {
	limit := time.NewTimer(time.Second)
	defer limit.Stop()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		text := t.String()
		if said, _, ok := strings.Cut(text, mark); ok {
			return said
		}
		select {
		case <-look.C:
		case <-limit.C:
			return text
		case <-ctx.Done():
			return text
		}
	}
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - complaintMost; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// printable keeps what a remote machine says to one line that moves no cursor.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if len(s) > 400 {
		s = s[:400] + "…"
	}
	return strings.TrimSpace(s)
}
