package agenttest

import "net/http"

// Cut cuts connections in the midst of answers: so many bytes of a body get through as keep says, all of them when that
// is negative.
func Cut(h http.Handler, keep func(r *http.Request) int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := keep(r)
		if n < 0 {
			h.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(&cutter{w, n}, r)
	})
}

type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	if len(b) <= c.left {
		c.left -= len(b)
		return c.ResponseWriter.Write(b)
	}
	_, _ = c.ResponseWriter.Write(b[:c.left]) // the client may have gone away
	_ = http.NewResponseController(c.ResponseWriter).Flush()
	panic(http.ErrAbortHandler)
}
