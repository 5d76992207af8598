package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
)

// An answer under way is finished before the server goes down; what the server does beside ends after it.
func TestAnswersUnderWayAreFinished(t *testing.T) {
	begun, goOn := make(chan struct{}), make(chan struct{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	working := true
	s := serving{
		listener: l, log: slog.New(slog.DiscardHandler), ready: func(string) error { return nil },
		server: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			close(begun)
			<-goOn
			if !working || r.Context().Err() != nil {
				w.WriteHeader(http.StatusInternalServerError)
			}
			io.WriteString(w, "whole")
		})},
		work: func(ctx context.Context) error {
			<-ctx.Done()
			working = false
			return nil
		},
	}
	ended := make(chan error, 1)
	go func() { ended <- s.untilStopped(ctx) }()
	text := make(chan string, 1)
	go func() {
		_, body, err := fetch("http://"+l.Addr().String(), nil)
		if err != nil {
			body = err.Error()
		}
		text <- body
	}()
	<-begun
	stop()
	select {
	case err := <-ended:
		t.Errorf("the server left an answer under way: %v", err)
	case goOn <- struct{}{}:
	}
	if got := <-text; got != "whole" {
		t.Errorf("got %q", got)
	}
	if err := <-ended; err != nil || working {
		t.Errorf("ended with %v, working %v", err, working)
	}
}

// A part that fails takes the server down, and is what the command says.
func TestAFailingPartEndsTheServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := serving{
		listener: l, log: slog.New(slog.DiscardHandler), ready: func(string) error { return nil },
		server: &http.Server{Handler: http.NotFoundHandler()},
		work:   func(context.Context) error { return errors.New("the database is gone") },
	}
	if err := s.untilStopped(t.Context()); err == nil || !strings.Contains(err.Error(), "the database is gone") {
		t.Errorf("got %v", err)
	}
	if _, _, err := fetch("http://"+l.Addr().String(), nil); err == nil {
		t.Error("the server still answers")
	}
}
