package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// stream writes server-sent events. Messages gather until send, so that a thousand log lines are one write.
type stream struct {
	w   http.ResponseWriter
	rc  *http.ResponseController
	buf []byte
	// gone says that a write failed: the client has left, which is nobody's fault.
	gone bool
}

// openStream sends the header at once: the client knows that the line stands before anything happens on it.
func openStream(w http.ResponseWriter, r *http.Request) (*stream, error) {
	requestOf(r.Context()).stream = true
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // nginx would gather events otherwise
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, rc: http.NewResponseController(w)}
	s.buf = append(s.buf, "retry: 1000\n\n"...)
	return s, s.send()
}

// message adds v as one message; id 0 is none.
func (s *stream) message(id int64, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if id != 0 {
		s.buf = append(s.buf, "id: "...)
		s.buf = strconv.AppendInt(s.buf, id, 10)
		s.buf = append(s.buf, '\n')
	}
	s.buf = append(s.buf, "data: "...)
	s.buf = append(s.buf, data...)
	s.buf = append(s.buf, "\n\n"...)
	return nil
}

// ping keeps proxies from taking the line for dead.
func (s *stream) ping() error {
	s.buf = append(s.buf, ": ping\n\n"...)
	return s.send()
}

func (s *stream) send() error {
	_, err := s.w.Write(s.buf)
	if cap(s.buf) > 1<<20 { // the past of a long run comes in large pieces, what follows in small ones
		s.buf = nil
	}
	s.buf = s.buf[:0]
	if err == nil {
		err = s.rc.Flush()
	}
	s.gone = s.gone || err != nil
	return err
}

// streamContext ends with the request, and with the server: a stream would hold up its shutdown.
func (h *Handlers) streamContext(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if h.Leaving == nil {
		return ctx, cancel
	}
	go func() {
		select {
		case <-h.Leaving:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// wantsStream reports whether the client asks for events and not for a list of them.
func wantsStream(accept string) bool {
	stream := false
	for part := range strings.SplitSeq(accept, ",") {
		kind, _, _ := strings.Cut(part, ";")
		switch strings.ToLower(strings.TrimSpace(kind)) {
		case "text/event-stream":
			stream = true
		case "application/json":
			return false
		}
	}
	return stream
}
