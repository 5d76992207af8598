package supervisor_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/store"
	"potato/supervisor"
)

var testLog = supervisor.LogQuery{Limit: 100}

// deleteSoon deletes a run that has ended, maybe this very moment.
func deleteSoon(t *testing.T, s *server, id api.RunID) {
	t.Helper()
	agenttest.Wait(t, "the run to be deleted", func() (bool, string) {
		err := s.DeleteRun(t.Context(), id)
		if err != nil && !api.HasCode(err, "run_not_over") {
			t.Fatal(err)
		}
		return err == nil, fmt.Sprint(err)
	})
}

// talkative is a runner whose agent reports what the test tells it to.
type talkative struct {
	runnertest.Fake
	told chan func(ctx context.Context, j runners.Job) error
}

func (r *talkative) Follow(ctx context.Context, j runners.Job, _ api.Handle) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case tell := <-r.told:
			if err := tell(ctx, j); err != nil {
				return nil
			}
		}
	}
}

// errOver ends the agent's work after what it was told to do.
var errOver = errors.New("the work is over")

// tell has the agent do something and waits for it.
func (r *talkative) tell(t *testing.T, what func(ctx context.Context, j runners.Job) error) {
	t.Helper()
	done := make(chan error, 1)
	r.told <- func(ctx context.Context, j runners.Job) error {
		err := what(ctx, j)
		if errors.Is(err, errOver) {
			done <- nil
			return err
		}
		done <- err
		return nil
	}
	must(t, <-done)
}

func startTalkative(t *testing.T, training string) (*server, *talkative) {
	t.Helper()
	r := &talkative{Fake: runnertest.Fake{Machine: &runnertest.Machine{}}, told: make(chan func(context.Context, runners.Job) error)}
	return start(t, runnertest.Study(t, training), func(o *supervisor.Options) {
		o.Runners = map[api.BackendType]runners.Runner{api.BackendLocal: r}
	}), r
}

func logEvent(seq int64, text string) api.Event {
	return api.Event{V: 1, Event: api.EventLog, T: 1, Seq: seq, Level: "info", Msg: text}
}

func TestProgressIsTakenOnceAndInOrder(t *testing.T) {
	s, agent := startTalkative(t, "")
	id := s.create(nil)
	var first int64
	agent.tell(t, func(ctx context.Context, j runners.Job) error {
		first = j.NextSeq
		a, err := j.Desk.Progress(ctx, j.Job, []api.Event{logEvent(first, "one"), logEvent(first+1, "two")})
		if err != nil || a.NextSeq != first+2 {
			return fmt.Errorf("got next %d, %w", a.NextSeq, err)
		}
		// A repetition with something new at its end; then a gap.
		a, err = j.Desk.Progress(ctx, j.Job, []api.Event{logEvent(first, "one"), logEvent(first+1, "two"), logEvent(first+2, "three")})
		if err != nil || a.NextSeq != first+3 {
			return fmt.Errorf("got next %d, %w", a.NextSeq, err)
		}
		a, err = j.Desk.Progress(ctx, j.Job, []api.Event{logEvent(first+9, "far")})
		if err != nil || a.NextSeq != first+3 {
			return fmt.Errorf("got next %d after a gap, %w", a.NextSeq, err)
		}
		out := logEvent(first+3, "a line of output")
		out.Source = "stdout"
		_, err = j.Desk.Progress(ctx, j.Job, []api.Event{out, out})
		return err
	})
	list, err := s.Events(t.Context(), id, 0, 100)
	must(t, err)
	var got []string
	for i, e := range list.Events {
		if e.Seq != int64(i)+1 {
			t.Errorf("event %d has the number %d", i+1, e.Seq)
		}
		got = append(got, e.Msg)
	}
	// The server's own line has a number in the log and none for the agent.
	if len(got) != 4 || first != 1 || !slices.Equal(got[1:], []string{"one", "two", "three"}) {
		t.Errorf("got %v after a first number of %d, want one line of the server's, then one, two, three", got, first)
	}
	lines, err := s.Log(t.Context(), id, supervisor.LogQuery{Source: supervisor.LogStdout})
	must(t, err)
	if lines.Total != 1 || lines.Lines[0].Text != "a line of output" {
		t.Errorf("got %+v, want one line", lines)
	}
	agent.tell(t, func(ctx context.Context, j runners.Job) error {
		j.Lease = "another"
		if _, err := j.Desk.Progress(ctx, j.Job, nil); !api.HasCode(err, "lease_moved") {
			return fmt.Errorf("with another lease, want lease_moved: %w", err)
		}
		j.RunID = "20260101T000000-000000"
		if _, err := j.Desk.Heartbeat(ctx, j.Job); !api.HasCode(err, "run_over") {
			return fmt.Errorf("for no run, want run_over: %w", err)
		}
		return nil
	})
}

// TestHalfWrittenLogIsMended cuts the server off between the files and the database, as a kill does.
func TestHalfWrittenLogIsMended(t *testing.T) {
	s, agent := startTalkative(t, "")
	id := s.create(nil)
	var first int64
	agent.tell(t, func(ctx context.Context, j runners.Job) error {
		first = j.NextSeq
		_, err := j.Desk.Progress(ctx, j.Job, []api.Event{logEvent(first, "one")})
		return err
	})
	s.stop()
	path := filepath.Join(s.config.TrainingPath(), "runs", string(id), "events.jsonl")
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"seq":99,"v":1,"event":"log","msg":"never kept"}` + "\n" + `{"seq":100,"v":1,"eve`)
	must(t, errors.Join(err, f.Close()))
	s.start()
	agent.tell(t, func(ctx context.Context, j runners.Job) error {
		if j.NextSeq != first+1 {
			return fmt.Errorf("got next %d, want %d", j.NextSeq, first+1)
		}
		_, err := j.Desk.Progress(ctx, j.Job, []api.Event{logEvent(first+1, "two")})
		return err
	})
	if text := s.logText(id); strings.Contains(text, "never kept") || !strings.Contains(text, "one") || !strings.Contains(text, "two") {
		t.Errorf("got the log\n%s", text)
	}
}

func TestManyEventsAreFoundByNumber(t *testing.T) {
	s, agent := startTalkative(t, "")
	id := s.create(nil)
	const n = 5000
	agent.tell(t, func(ctx context.Context, j runners.Job) error {
		for at := int64(0); at < n; at += 500 {
			var batch []api.Event
			for i := range int64(500) {
				e := logEvent(j.NextSeq+at+i, strings.Repeat("x", int(at+i)%700))
				if i%7 == 0 {
					e.Source = "stderr" // leaves a gap in the numbers
				}
				batch = append(batch, e)
			}
			if _, err := j.Desk.Progress(ctx, j.Job, batch); err != nil {
				return err
			}
		}
		return nil
	})
	all, err := s.Events(t.Context(), id, 0, 0)
	must(t, err)
	for after := int64(0); after < n+10; after += 37 {
		want := slices.IndexFunc(all.Events, func(e api.Event) bool { return e.Seq > after })
		list, err := s.Events(t.Context(), id, after, 3)
		must(t, err)
		if want < 0 {
			if len(list.Events) != 0 || list.Next != after {
				t.Fatalf("after %d: got %d events, want none", after, len(list.Events))
			}
			continue
		}
		for i, e := range list.Events {
			if e.Seq != all.Events[want+i].Seq {
				t.Fatalf("after %d: got event %d, want %d", after, e.Seq, all.Events[want+i].Seq)
			}
		}
	}
}

func TestSubscribeLosesNothing(t *testing.T) {
	s, agent := startTalkative(t, "")
	id := s.create(nil)
	const n = 300
	type end struct {
		seqs []int64
		err  error
	}
	ends := make(chan end)
	for range 5 {
		go func() {
			var e end
			// Every ten events the connection breaks and the reader comes back with the last number it has.
			for after := int64(0); ; {
				broken := errors.New("the connection broke")
				e.err = s.Subscribe(t.Context(), id, after, func(events []api.Event) error {
					for _, ev := range events {
						e.seqs = append(e.seqs, ev.Seq)
						after = ev.Seq
						if len(e.seqs)%10 == 0 {
							return broken
						}
					}
					return nil
				})
				if !errors.Is(e.err, broken) {
					break
				}
			}
			ends <- e
		}()
	}
	agent.tell(t, func(ctx context.Context, j runners.Job) error {
		for i := range int64(n) {
			if _, err := j.Desk.Progress(ctx, j.Job, []api.Event{logEvent(j.NextSeq+i, "x")}); err != nil {
				return err
			}
		}
		return cmp.Or(j.Desk.Finish(ctx, j.Job, api.Finish{ErrorCode: "worker_failed", Error: "enough"}), errOver)
	})
	s.await(id, api.RunError)
	all, err := s.Events(t.Context(), id, 0, 0)
	must(t, err)
	for range 5 {
		e := <-ends
		must(t, e.err)
		want := []int64{}
		for _, ev := range all.Events {
			want = append(want, ev.Seq)
		}
		if !slices.Equal(e.seqs, want) {
			t.Errorf("got %d events, want %d, each once and in order", len(e.seqs), len(want))
		}
	}
}

func TestLogPages(t *testing.T) {
	s, agent := startTalkative(t, "")
	id := s.create(nil)
	agent.tell(t, func(ctx context.Context, j runners.Job) error {
		var batch []api.Event
		for i := range int64(50) {
			e := logEvent(j.NextSeq+i, fmt.Sprintf("line %d", i+1))
			e.Source = "stdout"
			batch = append(batch, e)
		}
		_, err := j.Desk.Progress(ctx, j.Job, batch)
		return err
	})
	for _, tt := range []struct {
		q           supervisor.LogQuery
		first, last int64
		n           int
		total       int64
	}{
		{supervisor.LogQuery{Limit: 10}, 41, 50, 10, 50},
		{supervisor.LogQuery{Limit: 7}, 44, 50, 7, 50},
		{supervisor.LogQuery{Limit: 100}, 1, 50, 50, 50},
		{supervisor.LogQuery{From: 1, Limit: 10}, 1, 10, 10, 50},
		{supervisor.LogQuery{From: 45, Limit: 10}, 45, 50, 6, 50},
		{supervisor.LogQuery{From: 51, Limit: 10}, 0, 0, 0, 50},
		{supervisor.LogQuery{Q: "LINE 4", Limit: 100}, 4, 49, 11, 11},
		{supervisor.LogQuery{Q: "line 4", From: 42, Limit: 3}, 42, 44, 3, 11},
	} {
		tt.q.Source = supervisor.LogStdout
		got, err := s.Log(t.Context(), id, tt.q)
		must(t, err)
		if got.Total != tt.total || len(got.Lines) != tt.n {
			t.Errorf("%+v: got %d lines of %d, want %d of %d", tt.q, len(got.Lines), got.Total, tt.n, tt.total)
			continue
		}
		if tt.n > 0 && (got.Lines[0].N != tt.first || got.Lines[tt.n-1].N != tt.last || got.Lines[0].Text != fmt.Sprintf("line %d", tt.first)) {
			t.Errorf("%+v: got lines %+v, want %d to %d", tt.q, got.Lines, tt.first, tt.last)
		}
	}
	_, err := s.Log(t.Context(), id, supervisor.LogQuery{Source: "../../etc/passwd"})
	wantCode(t, err, "bad_source")
}

func TestArtifacts(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), fake(&runnertest.Machine{}))
	id := s.create(nil)
	s.await(id, api.RunSuccess)
	dir := filepath.Join(s.config.TrainingPath(), "runs", string(id), "artifacts")
	must(t, os.MkdirAll(filepath.Join(dir, "model"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "model", "weights.bin"), []byte("abc"), 0o600))
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	must(t, os.Symlink("/etc", filepath.Join(dir, "folder")))
	list, err := s.Artifacts(t.Context(), id)
	must(t, err)
	var paths []string
	for _, a := range list.Artifacts {
		paths = append(paths, a.Path)
	}
	if !slices.Equal(paths, []string{"model/weights.bin", "predictions.jsonl"}) || list.Artifacts[0].Bytes != 3 ||
		list.Artifacts[0].SHA256 != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("got %+v", list)
	}
	f, err := s.OpenArtifact(t.Context(), id, "model/weights.bin")
	must(t, err)
	must(t, f.Close())
	for _, path := range []string{"link", "folder/passwd", "../spec.json", "/etc/passwd", "", ".", "model", "none", "model/../../spec.json"} {
		_, err := s.OpenArtifact(t.Context(), id, path)
		wantCode(t, err, "artifact_not_found")
	}
	_, err = s.OpenArtifact(t.Context(), "20260101T000000-000000", "x")
	wantCode(t, err, "run_not_found")
}

// TestArtifactsWhileTheyChange lists files that a worker renames and removes meanwhile.
func TestArtifactsWhileTheyChange(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), fake(&runnertest.Machine{}))
	id := s.create(nil)
	s.await(id, api.RunSuccess)
	dir := filepath.Join(s.config.TrainingPath(), "runs", string(id), "artifacts")
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		var err error
		for i := 0; ctx.Err() == nil && err == nil; i++ {
			partial := filepath.Join(dir, fmt.Sprintf("model/%d/weights.partial", i))
			err = errors.Join(os.MkdirAll(filepath.Dir(partial), 0o700), os.WriteFile(partial, []byte(fmt.Sprint(i)), 0o600),
				os.Rename(partial, filepath.Join(dir, "weights")), os.RemoveAll(filepath.Join(dir, "model")))
		}
		ended <- err
	}()
	for range 500 {
		if _, err := s.Artifacts(t.Context(), id); err != nil {
			t.Error(err)
			break
		}
	}
	stop()
	must(t, <-ended)
}

// TestT44ManyAgentsAndReaders is fifty runs whose agents report while lists are read and runs pruned: no call fails.
func TestT44ManyAgentsAndReaders(t *testing.T) {
	s, agent := startTalkative(t, "  max_concurrent_runs: 50\n  retain_runs: 1\n")
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	for range 50 {
		s.create(nil)
	}
	agenttest.Wait(t, "fifty runs to be under way", func() (bool, string) {
		list, err := s.Runs(t.Context(), store.RunFilter{Status: []api.RunStatus{api.RunRunning}, Limit: 100})
		must(t, err)
		return len(list.Runs) == 50, fmt.Sprint(len(list.Runs))
	})
	ended := make(chan error)
	for range 50 {
		agent.told <- func(_ context.Context, j runners.Job) error {
			next, err := j.NextSeq, error(nil)
			for ctx.Err() == nil && err == nil {
				var a api.Answer
				a, err = j.Desk.Progress(t.Context(), j.Job, []api.Event{logEvent(next, "busy")})
				next = a.NextSeq
			}
			ended <- err
			return cmp.Or(j.Desk.Finish(t.Context(), j.Job, api.Finish{ErrorCode: "worker_failed", Error: "over"}), errOver)
		}
	}
	for i := 0; ctx.Err() == nil; i++ {
		_, err := s.Runs(t.Context(), store.RunFilter{})
		must(t, err)
		_, err = s.Status(t.Context())
		must(t, err)
	}
	for range 50 {
		must(t, <-ended)
	}
}

func TestSilentAgentIsLost(t *testing.T) {
	s, agent := startTalkative(t, "  heartbeat_timeout_s: 1\n")
	id := s.create(nil)
	agent.tell(t, func(ctx context.Context, j runners.Job) error {
		_, err := j.Desk.Heartbeat(ctx, j.Job)
		return err
	})
	began := time.Now()
	r := s.await(id, api.RunError)
	if r.ErrorCode != "heartbeat_lost" || r.Error != "No word from the agent on local for 1 seconds" || r.Hint == "" {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("it took %v, want a second and little more", took)
	}
}
