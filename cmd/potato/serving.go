package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"syscall"
	"time"

	"potato/api"
)

// drain is how long answers under way may take when the server goes down; training does not end with it.
const drain = 30 * time.Second

// serving is a server that is about to answer.
type serving struct {
	listener net.Listener
	server   *http.Server
	cert     *tls.Certificate                // nil: plain HTTP
	work     func(ctx context.Context) error // what the server does beside answering, until its context ends
	ready    func(url string) error
	log      *slog.Logger
}

// untilStopped answers until ctx ends, which a signal does, or one of the server's parts fails. The first signal lets
// answers under way finish; a second one ends the process where it stands. Runs go on either way.
func (s serving) untilStopped(ctx context.Context) error {
	workCtx, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	worked, answered := make(chan error, 1), make(chan error, 1)
	go func() { worked <- s.work(workCtx) }()
	go func() { answered <- s.answer() }()

	err := s.ready(siteURL(s.listener, s.cert != nil) + "/admin/training")
	var workDone, answerDone bool
	if err == nil {
		select {
		case <-ctx.Done():
			s.log.Info("stopping; what trains goes on and is picked up by the next start")
		case err = <-worked:
			workDone = true
		case err = <-answered:
			answerDone = true
		}
	}
	signal.Reset(syscall.SIGINT, syscall.SIGTERM) // from here on a signal has its usual effect
	if !answerDone {
		err = errors.Join(err, s.shutDown(ctx), <-answered)
	}
	stopWork()
	if !workDone {
		err = errors.Join(err, <-worked)
	}
	return err
}

func (s serving) answer() error {
	var err error
	if s.cert != nil {
		s.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*s.cert}, MinVersion: tls.VersionTLS12}
		err = s.server.ServeTLS(s.listener, "", "")
	} else {
		err = s.server.Serve(s.listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serve: %w", err)
}

func (s serving) shutDown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
	defer cancel()
	err := s.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.log.Warn("some answers did not finish in time and were cut off", "seconds", drain.Seconds())
		return s.server.Close()
	}
	return err
}

// certificate reads what --tls-cert and --tls-key name; neither is plain HTTP.
func certificate(cert, key string) (*tls.Certificate, error) {
	if cert == "" {
		return nil, nil
	}
	c, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, api.Invalidf("tls_files", "the certificate in %s cannot be used: %v", cert, err).
			WithHint("--tls-cert is the certificate with its chain, --tls-key its key without a passphrase, as PEM files")
	}
	return &c, nil
}
