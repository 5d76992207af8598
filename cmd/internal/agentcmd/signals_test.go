package agentcmd_test

import (
	"context"
	"errors"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"potato/cmd/internal/agentcmd"
)

// attendedSignals reports how stop and the context end while the signals come one after another.
func attendedSignals(t *testing.T, ctx context.Context, signals ...syscall.Signal) (stopped, ended bool, err error) {
	t.Helper()
	err = agentcmd.Attended(ctx, slog.New(slog.DiscardHandler), func(ctx context.Context, stop <-chan struct{}) error {
		for i, s := range signals {
			if err := syscall.Kill(syscall.Getpid(), s); err != nil {
				t.Fatal(err)
			}
			what := stop
			if i > 0 {
				what = ctx.Done()
			}
			select {
			case <-what:
			case <-time.After(10 * time.Second):
				t.Fatalf("signal %d had no effect", i+1)
			}
			stopped, ended = true, ctx.Err() != nil
		}
		return ctx.Err()
	})
	return stopped, ended, err
}

// The first signal asks to stop, the second one ends everything; what the caller's context does by then is too soon.
func TestAttended(t *testing.T) {
	outer, cancel := context.WithCancel(t.Context())
	if stopped, ended, err := attendedSignals(t, outer, syscall.SIGTERM); !stopped || ended || err != nil {
		t.Errorf("one signal: %v, %v, %v", stopped, ended, err)
	}
	if stopped, ended, err := attendedSignals(t, outer, syscall.SIGINT, syscall.SIGHUP); !stopped || !ended || !errors.Is(err, context.Canceled) {
		t.Errorf("two signals: %v, %v, %v", stopped, ended, err)
	}
	cancel()
	if _, _, err := attendedSignals(t, outer); !errors.Is(err, context.Canceled) {
		t.Errorf("a signal that came before: %v", err)
	}
}
