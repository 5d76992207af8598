package handlers

import (
	"context"
	"crypto/rand"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
)

// request is what the server remembers of a call while it answers it. Only the middleware that belongs to the call
// writes it, before the handler runs.
type request struct {
	id        string
	operation string // the operation's id, or what else it is; never the path, of which there is no end
	stream    bool   // ends with the client, not with the work: its time says nothing
	routine   bool   // agents send it all the time
}

type requestKey struct{}

// requestOf finds the call's record; outside of a call there is an empty one.
func requestOf(ctx context.Context) *request {
	if r, ok := ctx.Value(requestKey{}).(*request); ok {
		return r
	}
	return &request{}
}

// observe is the outermost middleware: it names the call, counts and logs it, and answers for a handler that panics.
func (h *Handlers) observe(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		req := &request{id: rand.Text()[:12], operation: "none"}
		r = r.WithContext(context.WithValue(r.Context(), requestKey{}, req))
		w.Header().Set("X-Request-Id", req.id)
		rec := &recorder{ResponseWriter: w}
		defer func() {
			broken := recover()
			if broken != nil && broken != http.ErrAbortHandler { //nolint:errorlint // net/http compares it so
				h.Log.ErrorContext(r.Context(), "request panicked", "request", req.id, "operation", req.operation, "panic", broken, "stack", string(debug.Stack()))
				if rec.status == 0 {
					writeProblem(rec, internal(r.Context()))
					broken = nil
				} else {
					broken = http.ErrAbortHandler // a half-sent answer must not look whole
				}
			}
			h.count(req, rec.status, time.Since(began))
			h.logRequest(r, req, rec.status, time.Since(began))
			if broken != nil {
				panic(broken)
			}
		}()
		next.ServeHTTP(rec, r)
	})
}

// logRequest notes what was changed or went wrong; reads are for those who ask for them. The address is the sender's,
// and queries and bodies are left out: a secret may stand in them.
func (h *Handlers) logRequest(r *http.Request, req *request, status int, took time.Duration) {
	level := slog.LevelDebug
	switch {
	case status >= http.StatusInternalServerError && !(req.routine && status == http.StatusServiceUnavailable):
		level = slog.LevelError
	case r.Method != http.MethodGet && r.Method != http.MethodHead && status < http.StatusBadRequest && !req.routine:
		level = slog.LevelInfo
	}
	h.Log.Log(r.Context(), level, "request", "request", req.id, "operation", req.operation, "status", status,
		"ms", took.Milliseconds(), "from", h.sender(r))
}

// name tells the call's record which operation it is.
func name(ctx huma.Context, next func(huma.Context)) {
	r, _ := humachi.Unwrap(ctx)
	requestOf(r.Context()).operation = ctx.Operation().OperationID
	next(ctx)
}

// writeTimeout is how long a client may leave what it asked for unread. It is set anew with every write, so that a slow
// download of any length goes on and one that has stopped ends.
const writeTimeout = time.Minute

// recorder remembers the status and keeps the write deadline ahead.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status.
func (w *recorder) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write sends bytes, within writeTimeout.
func (w *recorder) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	// A writer without deadlines is one of a test or of a wrapper; then the client's patience is all there is.
	_ = http.NewResponseController(w.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTimeout))
	return w.ResponseWriter.Write(b)
}

// copyPiece is how much of a file is sent within one writeTimeout.
const copyPiece = 512 << 10

// ReadFrom sends a file by the kernel's own copying where it can, a piece at a time within writeTimeout each.
func (w *recorder) ReadFrom(r io.Reader) (n int64, err error) {
	to, quick := w.ResponseWriter.(io.ReaderFrom)
	if !quick {
		return io.Copy(struct{ io.Writer }{w}, r)
	}
	if w.status == 0 {
		w.status = http.StatusOK
	}
	rc := http.NewResponseController(w.ResponseWriter)
	for {
		// The kernel takes a file behind one limit, not behind two.
		piece := &io.LimitedReader{R: r, N: copyPiece}
		outer, limited := r.(*io.LimitedReader)
		if limited {
			piece = &io.LimitedReader{R: outer.R, N: min(outer.N, copyPiece)}
		}
		_ = rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // as in Write
		sent, err := to.ReadFrom(piece)
		n += sent
		if limited {
			outer.N -= sent
		}
		if err != nil || sent < copyPiece {
			return n, err
		}
	}
}

// Flush sends what is buffered.
func (w *recorder) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Unwrap lets http.ResponseController find the connection.
func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }
