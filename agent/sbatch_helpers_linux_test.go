package agent_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

// switched is a server that can be switched off.
type switched struct{ away atomic.Bool }

func newSwitch() *switched { return &switched{} }

func (s *switched) on()  { s.away.Store(true) }
func (s *switched) off() { s.away.Store(false) }

func (s *switched) refuse(agenttest.Call) error {
	if s.away.Load() {
		return api.Unavailablef("server_unreachable", "the server is away")
	}
	return nil
}

// wait is longer than other tests have to wait: a scheduler takes its time on a busy machine.
func wait(tb testing.TB, what string, done func() (bool, string)) {
	tb.Helper()
	var state string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var ok bool
		if ok, state = done(); ok {
			return
		}
	}
	tb.Fatalf("waited for %s; the last state was: %s", what, state)
}

func last(events []api.Event, kind api.EventType) (e api.Event) {
	for _, each := range events {
		if each.Event == kind {
			e = each
		}
	}
	return e
}

func touch(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (b *slurmBench) command(name string, args ...string) {
	b.Helper()
	if _, err := b.cluster.Command(name, args...); err != nil {
		b.Fatal(err)
	}
}

func (b *slurmBench) scontrol(args ...string) {
	b.Helper()
	b.command("scontrol", args...)
}

// until waits until each job of the run is in one of the states.
func (b *slurmBench) until(states ...string) {
	b.Helper()
	wait(b, "a job that is "+strings.Join(states, " or "), func() (bool, string) {
		now := strings.Fields(b.queue("%T"))
		return len(now) > 0 && !slices.ContainsFunc(now, func(s string) bool { return !slices.Contains(states, s) }), strings.Join(now, " ")
	})
}

// startUntil works on the job until leave is called, as an agent that is killed.
func (b *slurmBench) startUntil() (leave func()) {
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- agent.Work(ctx, b.job, b.o) }()
	return func() {
		cancel()
		<-done
	}
}
