package agent_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
)

// discarding is a desk that keeps no events, only counts of them.
type discarding struct {
	next                  int64
	output, marks, result int
	finish                api.Finish
}

func (d *discarding) Bundle(context.Context, api.Job, string) (string, error) { return "", nil }

func (d *discarding) Progress(_ context.Context, _ api.Job, events []api.Event) (api.Answer, error) {
	for _, e := range events {
		d.next = e.Seq + 1
		switch {
		case e.Source == "stdout":
			d.output += len(e.Msg) + 1
		case strings.HasPrefix(e.Msg, "The log has reached 100 MB and ends here"):
			d.marks++
		case e.Event == api.EventResult:
			d.result++
		}
	}
	return api.Answer{NextSeq: d.next}, nil
}

func (d *discarding) Heartbeat(context.Context, api.Job) (api.Answer, error) {
	return api.Answer{}, nil
}

func (d *discarding) Predictions(context.Context, api.Job, string) error { return nil }

func (d *discarding) Finish(_ context.Context, _ api.Job, f api.Finish) error {
	d.finish = f
	return nil
}

// A worker that prints 130 MB costs the agent little memory, and the log ends at its limit with a word on it (F3).
func TestFlood(t *testing.T) {
	b := newBench(t, append([]agenttest.Step{{"flood", 130 << 20}}, agenttest.Good(1)...)...)
	desk := &discarding{}
	b.o.Desk = desk
	done := make(chan struct{})
	peak := make(chan uint64, 1)
	runtime.GC()
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	go func() {
		var top uint64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-done:
				peak <- top
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				top = max(top, m.HeapInuse)
			}
		}
	}()
	wait := b.begin(t.Context())
	if err := wait(); err != nil {
		t.Fatal(err)
	}
	close(done)
	if grew := int64(<-peak) - int64(before.HeapInuse); grew > 48<<20 {
		t.Errorf("memory grew by %d MB", grew>>20)
	}
	if desk.finish.ErrorCode != "" {
		t.Errorf("finish = %+v", desk.finish)
	}
	if want := 100 << 20; desk.output < want-(64<<10) || desk.output > want {
		t.Errorf("%d bytes of output were sent, want up to %d", desk.output, want)
	}
	if desk.marks != 1 {
		t.Errorf("%d events say that the log ends, want 1", desk.marks)
	}
	info, err := os.Stat(filepath.Join(b.o.Dir, "stdout.log"))
	if err != nil || info.Size() != 130<<20 {
		t.Errorf("stdout.log: %v, %v; want all of it", info.Size(), err)
	}
	if desk.result != 1 {
		t.Errorf("%d results came", desk.result)
	}
}
