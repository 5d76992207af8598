package supervisor_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"potato/api"
	"potato/runners"
	"potato/supervisor"
)

// Twenty pages follow one run from different places, the slow one among them too; each gets all from there on, once and in
// order, whoever read it from the file.
func TestManyFollowOneRun(t *testing.T) {
	s, agent := startTalkative(t, "")
	id := s.create(nil)
	const n, followers = 4000, 20
	type end struct {
		after int64
		seqs  []int64
		err   error
	}
	ends := make(chan end)
	for i := range int64(followers) {
		go func() {
			e := end{after: i * 97}
			e.err = s.Subscribe(t.Context(), id, e.after, func(events []api.Event) error {
				for _, ev := range events {
					e.seqs = append(e.seqs, ev.Seq)
				}
				if i == 0 { // reads while others are further on
					_, err := s.Events(t.Context(), id, 0, 100)
					return err
				}
				return nil
			})
			ends <- e
		}()
	}
	agent.tell(t, func(ctx context.Context, j runners.Job) error {
		for at := int64(0); at < n; at += 40 {
			var batch []api.Event
			for i := range int64(40) {
				e := logEvent(j.NextSeq+at+i, strings.Repeat("x", int(at+i)%300))
				if i%7 == 0 {
					e.Source = "stdout" // leaves a gap in the numbers
				}
				batch = append(batch, e)
			}
			if _, err := j.Desk.Progress(ctx, j.Job, batch); err != nil {
				return err
			}
		}
		if err := j.Desk.Finish(ctx, j.Job, api.Finish{ErrorCode: "worker_failed", Error: "enough"}); err != nil {
			return err
		}
		return errOver
	})
	s.await(id, api.RunError)
	all, err := s.Events(t.Context(), id, 0, 5000)
	must(t, err)
	for range followers {
		e := <-ends
		must(t, e.err)
		want := []int64{}
		for _, ev := range all.Events {
			if ev.Seq > e.after {
				want = append(want, ev.Seq)
			}
		}
		if !slices.Equal(e.seqs, want) {
			t.Errorf("after %d: got %d events, want %d, each once and in order", e.after, len(e.seqs), len(want))
		}
	}
}

// A reader that stopped at the end of a file goes on right also when the end was cut off since, as it is when it could not
// be kept, and something else is there.
func TestReaderAfterACut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	line := func(seq int, msg string) string {
		return fmt.Sprintf(`{"seq":%d,"v":1,"event":"log","t":1,"msg":%q}`+"\n", seq, msg)
	}
	write := func(lines ...string) {
		must(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
	}
	c := supervisor.NewEventCursor(path, 0)
	next := func(want ...string) {
		t.Helper()
		events, err := supervisor.CursorEvents(c)
		must(t, err)
		var got []string
		for _, e := range events {
			got = append(got, e.Msg)
		}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	next()
	write(line(1, "a"), line(2, "b"))
	next("a", "b")
	next()
	write(line(1, "a"), line(2, "b"), `{"seq":3,"v":1,"ev`)
	next()
	write(line(1, "a"), line(2, "b"), line(3, "c"))
	next("c")
	write(line(1, "a")) // 2 and 3 are cut off, and come again in another length
	next()
	write(line(1, "a"), line(2, "b, longer than before"), line(3, "c"), line(4, "d"))
	next("d")
	write(line(1, "a"), line(2, "b"), line(3, "c"), line(4, "d"), line(5, "e"))
	next("e")
}

// Pages that wake up together have one of them read the file, and one that is late, as on a busy machine, takes over what
// the others have read: else each would decode everything for itself.
func TestPagesShareWhatIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	file, err := os.Create(path)
	must(t, err)
	defer file.Close()
	var shared supervisor.Shared
	seq, size := 0, 0
	grow := func() {
		var text strings.Builder
		for range 40 {
			seq++
			fmt.Fprintf(&text, `{"seq":%d,"v":1,"event":"log","t":1,"msg":"line %d"}`+"\n", seq, seq)
		}
		n, err := file.WriteString(text.String())
		must(t, err)
		size += n
		shared.Size(int64(size))
	}
	const pages, pieces = 50, 10
	cursors := make([]*supervisor.EventCursor, pages)
	for i := range cursors {
		cursors[i] = supervisor.NewEventCursor(path, 0)
	}
	late := supervisor.NewEventCursor(path, 0)
	first := make([]*api.Event, 0, pieces) // of each piece
	for range pieces {
		grow()
		got := make([]*api.Event, pages)
		var wake, all sync.WaitGroup
		wake.Add(1)
		for i, c := range cursors {
			all.Go(func() {
				wake.Wait()
				if events, err := shared.Read(c); err == nil && len(events) == 40 {
					got[i] = &events[0]
				}
			})
		}
		wake.Done()
		all.Wait()
		for i, p := range got {
			if p == nil || p != got[0] {
				t.Fatalf("page %d read for itself, or not everything", i)
			}
		}
		first = append(first, got[0])
	}
	for i := range first {
		events, err := shared.Read(late)
		must(t, err)
		if len(events) != 40 || &events[0] != first[i] {
			t.Fatalf("the late page has %d events of piece %d, and not those of the others", len(events), i)
		}
	}
	if events, err := shared.Read(late); err != nil || len(events) > 0 {
		t.Errorf("past the end come %d events, %v", len(events), err)
	}
}
