package agenttest

import (
	"net/http"
)

// recorder keeps an answer back until it is sure that it is to be sent.
type recorder struct {
	http.ResponseWriter
	header http.Header
	status int
	body   []byte
}

func (a *recorder) Header() http.Header { return a.header }

func (a *recorder) WriteHeader(status int) { a.status = status }

func (a *recorder) Write(b []byte) (int, error) {
	a.body = append(a.body, b...)
	return len(b), nil
}

func (a *recorder) flush() {
	for name, values := range a.header {
		a.ResponseWriter.Header()[name] = values
	}
	if a.status != 0 {
		a.ResponseWriter.WriteHeader(a.status)
	}
	_, _ = a.ResponseWriter.Write(a.body) // the client went away
}
