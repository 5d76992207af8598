package agentcmd

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// attended calls do and takes care of signals: the first one closes stop, the second one ends the context. A signal that
// was ignored when the program was started, as nohup does, is left so.
func attended(ctx context.Context, log *slog.Logger, do func(ctx context.Context, stop <-chan struct{}) error) error {
	signals := make(chan os.Signal, 8)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	defer signal.Stop(signals)
	// A terminal or a pipe that goes away must not end us in the midst of a line; caught, for what is ignored would stay so
	// in the worker.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)

	if ctx.Err() != nil { // a signal that came before we listened
		return ctx.Err()
	}
	// Whoever called ends ctx with the first signal; from now on that would be too soon.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop, done := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		select {
		case <-done:
			return
		case s := <-signals:
			log.Info("stopping; once more ends everything at once", "signal", s)
			close(stop)
		}
		select {
		case <-done:
		case <-signals:
			cancel()
		}
	})
	err := do(ctx, stop)
	close(done)
	wg.Wait()
	return err
}
