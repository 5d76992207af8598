package agent

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"potato/api"
)

const (
	agentLogLines  = 1000        // of one call of Work; what goes wrong for hours must not fill the server's disk
	agentLogRepeat = time.Minute // the same line is not written again sooner
	agentLogBytes  = 2000        // of one line
	lastLinesWait  = 2 * time.Second
)

// runLogger is a run's log of its agent. What is said goes to the log of this machine, and whatever the level there, into
// the outbox as log events of the source "agent": on the server they become the run's agent.log.
//
// It never makes work of its own: a line that tells of a call that failed is written once a minute, in all there are only
// so many of them, and a line that cannot be written is lost without a word.
type runLogger struct {
	slog.Handler // of this machine
	book         *runLogBook
}

// runLogBook is what the handlers of one log share.
type runLogBook struct {
	out *outbox

	mu      sync.Mutex
	lines   int
	repeats map[string]*repeated
}

type repeated struct {
	at      time.Time
	dropped int
}

// runLog is the log of this call of Work.
func (o Options) runLog(run api.RunID, out *outbox) *slog.Logger {
	log := o.Log.With("run", run)
	if !o.TellLog {
		return log
	}
	return newRunLogger(log, out)
}

func newRunLogger(log *slog.Logger, out *outbox) *slog.Logger {
	return slog.New(runLogger{log.Handler(), &runLogBook{out: out, repeats: map[string]*repeated{}}})
}

// Enabled implements slog.Handler: the run's file has the small steps too.
func (runLogger) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler. What all lines of a run have in common is not repeated in its own file.
func (a runLogger) WithAttrs(attrs []slog.Attr) slog.Handler {
	return runLogger{a.Handler.WithAttrs(attrs), a.book}
}

// WithGroup implements slog.Handler.
func (a runLogger) WithGroup(name string) slog.Handler {
	return runLogger{a.Handler.WithGroup(name), a.book}
}

// Handle implements slog.Handler.
func (a runLogger) Handle(ctx context.Context, r slog.Record) error {
	level := "info"
	if r.Level >= slog.LevelWarn {
		level = "warning"
	}
	a.book.line(r.Time, level, agentLogText(r))
	if !a.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return a.Handler.Handle(ctx, r)
}

// agentLogText is a record as one line: the message, the attributes, and what went wrong last.
func agentLogText(r slog.Record) string {
	var b, wrong bytes.Buffer
	if r.Level >= slog.LevelWarn {
		b.WriteString("warning: ")
	}
	b.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		text := a.Value.Resolve().String()
		if a.Key == "err" || a.Key == "cause" {
			wrong.WriteString(": " + text)
			return true
		}
		if text == "" || strings.ContainsAny(text, " \t\n\"=") {
			text = strconv.Quote(text)
		}
		b.WriteString(" " + a.Key + "=" + text)
		return true
	})
	b.Write(wrong.Bytes())
	return cut(strings.ReplaceAll(clean(b.Bytes()), "\n", " "), agentLogBytes)
}

// line writes a line, unless it was just written or there were enough of them.
func (b *runLogBook) line(at time.Time, level, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lines >= agentLogLines {
		return
	}
	r := b.repeats[text]
	if r != nil && at.Sub(r.at) < agentLogRepeat {
		r.dropped++
		return
	}
	msg := text
	if r != nil && r.dropped > 0 {
		msg += " (and " + strconv.Itoa(r.dropped) + " times more in between)"
	}
	b.repeats[text] = &repeated{at: at}
	if b.lines++; b.lines == agentLogLines {
		msg = "warning: the agent has said too much for this log, which ends here; its own log goes on"
	}
	e := logEvent(level, at.UTC().Format(time.RFC3339)+" "+msg)
	e.Source = agentSource
	_ = b.out.remark(e) // a full disk ends the work elsewhere
}

const agentSource = "agent"

// introduce is the log's first line: who works on the run, and where to look for more. When an earlier agent wrote down
// the end, the server may have heard of it, and takes no more lines.
func (w *work) introduce() {
	has := func(file string) bool {
		_, err := os.Stat(filepath.Join(w.o.Dir, file))
		return err == nil
	}
	msg := "working on the run"
	switch {
	case has(finishFile):
		w.out.seal(false)
	case has(handleFile):
		msg = "going on with the run, which has a worker already"
	}
	w.log.Debug(msg, "host", hostname(), "pid", os.Getpid(), "dir", w.o.Dir)
}

// sayEnd tells how the worker ended.
func (w *work) sayEnd(f api.Finish) {
	var attrs []any
	if f.ExitCode != nil {
		attrs = append(attrs, "exit_code", *f.ExitCode)
	}
	switch {
	case f.ErrorCode != "":
		w.log.Debug("the work has ended without a result", append(attrs, "code", f.ErrorCode, "err", f.Error)...)
	case f.Cancelled:
		w.log.Debug("the work has ended, cancelled", attrs...)
	default:
		w.log.Debug("the worker has ended with a result", attrs...)
	}
}

// lastLines gives the server a moment to take what is left of the log. From then on there is no more of it: the next word
// is the run's last.
func (w *work) lastLines(ctx context.Context) {
	limit := time.NewTimer(lastLinesWait)
	defer limit.Stop()
	for {
		w.mu.Lock()
		sent, end := w.sent, w.end
		w.mu.Unlock()
		if sent >= w.out.end() || end.over != nil || end.lost {
			break
		}
		select {
		case <-ctx.Done():
		case <-limit.C:
		case <-w.wake:
			continue
		}
		break
	}
	w.out.seal(true)
}

// retries is a context in which a desk over HTTP says what it tries again.
func (w *work) retries(ctx context.Context) context.Context {
	return api.WithRetries(ctx, func(what string, err error) { w.log.Debug("trying again", "what", what, "err", err) })
}
