package hosts_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"potato/api"
	"potato/runners/hosts"
	"potato/runners/hosts/hoststest"
)

func TestMain(m *testing.M) { os.Exit(hoststest.Main(m.Run)) }

// each runs a test over both transports.
func each(t *testing.T, f func(t *testing.T, transport string)) {
	for _, transport := range []string{hosts.TransportNative, hosts.TransportOpenSSH} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			f(t, transport)
		})
	}
}

func options(t *testing.T) hosts.Options {
	return hosts.Options{ConfigFile: hoststest.Get(t).Config, ConnectTimeout: 10 * time.Second}
}

func dial(t *testing.T, target hosts.Target, o hosts.Options) *hosts.Conn {
	t.Helper()
	c, err := hosts.Dial(t.Context(), target, o)
	if err != nil {
		t.Fatalf("dial %s: %v; cause: %v", target.Host, err, errors.Unwrap(err))
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func run(t *testing.T, c *hosts.Conn, s hosts.Script) hosts.Answer {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	a, err := c.Run(ctx, s)
	if err != nil {
		t.Fatalf("run a script: %v; cause: %v", err, errors.Unwrap(err))
	}
	return a
}

// refusal is the error of a login that must not succeed.
func refusal(t *testing.T, target hosts.Target, o hosts.Options) *api.Error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := hosts.Dial(ctx, target, o)
	if err == nil {
		_ = c.Close()
		t.Fatalf("%s let us in", target.Host)
	}
	var e *api.Error
	if !errors.As(err, &e) {
		t.Fatalf("%s: got %v, want a sentence", target.Host, err)
	}
	return e
}
