package handlers

import (
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// NewServer makes the HTTP server of a study; page answers for what the browser shows. Its Shutdown ends event streams at
// once and lets everything else finish.
func NewServer(o Options, page http.Handler) *http.Server {
	leaving := make(chan struct{})
	o.Leaving = leaving
	h := newHandlers(o)
	s := &http.Server{
		Handler: h.handler(page),
		// No limit on whole requests and answers: bundles and models are large. Reading and writing have their own.
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(h.Log.Handler(), slog.LevelDebug), // strangers' broken connections
	}
	s.RegisterOnShutdown(sync.OnceFunc(func() { close(leaving) }))
	return s
}
