package agent_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"potato/agent"
	"potato/api"
)

func line(n int) string {
	return fmt.Sprintf(`{"v":1,"event":"metric","t":1,"name":"n","value":%d}`, n) + "\n"
}

// told is what an event says, in short.
func told(events []api.Event) (all []string) {
	for _, e := range events {
		s := fmt.Sprintf("%d:%s:", e.Attempt, e.Event)
		if e.Value != nil {
			s += fmt.Sprint(*e.Value)
		}
		if e.Event == api.EventLog {
			s += e.Level + " " + e.Msg
		}
		all = append(all, s)
	}
	return all
}

func write(t testing.TB, path string, content string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, f *agent.Follower, final bool) []api.Event {
	t.Helper()
	events, err := f.Read(final)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// Lines as crashes, careless libraries and slow disks leave them: every whole event once, in order, the rest in the log (T47).
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 20<<20)
	tests := map[string]struct {
		content string
		want    []string
	}{
		"two":                        {line(1) + line(2), []string{"1:metric:1", "1:metric:2"}},
		"blank lines":                {"\n \n" + line(1) + "\r\n", []string{"1:metric:1"}},
		"no end of line at the end":  {line(1) + strings.TrimSuffix(line(2), "\n"), []string{"1:metric:1", "1:metric:2"}},
		"half a line at the end":     {line(1) + line(2)[:20], []string{"1:metric:1", `1:log:warning The worker wrote a line of 20 bytes that is no event (unexpected end of JSON input): {"v":1,"event":"metr`}},
		"NULs after a crash":         {line(1) + "\x00\x00\x00\x00" + line(2) + "\x00\x00", []string{"1:metric:1", "1:metric:2"}},
		"a torn line, NULs, a whole": {line(1)[:10] + "\x00\x00" + line(2), []string{`1:log:warning The worker wrote a line of 10 bytes that is no event (unexpected end of JSON input): {"v":1,"ev`, "1:metric:2"}},
		"no JSON":                    {"Traceback\n" + line(1), []string{"1:log:warning The worker wrote a line of 9 bytes that is no event (invalid character 'T' looking for beginning of value): Traceback", "1:metric:1"}},
		"an event nobody knows":      {`{"v":1,"event":"party"}` + "\n", []string{`1:log:warning The worker wrote a line of 23 bytes that is no event (its event is unknown: party): {"v":1,"event":"party"}`}},
		"no event":                   {`{"v":1}` + "\n", []string{`1:log:warning The worker wrote a line of 7 bytes that is no event (it names no event): {"v":1}`}},
		"NaN":                        {`{"v":1,"event":"metric","name":"NaN \" NaN","value":NaN}` + "\n", []string{"1:metric:"}},
		"invalid UTF-8":              {"{\"v\":1,\"event\":\"log\",\"level\":\"info\",\"msg\":\"caf\xe9\"}\n", []string{"1:log:info caf\uFFFD"}},
		"a long one":                 {`{"v":1,"event":"log","level":"info","msg":"` + long + `"}` + "\n" + line(1), []string{"1:log:info " + long[:30<<10-len(" … (cut)")] + " … (cut)", "1:metric:1"}},
		"an endless one":             {long + long + "\n" + line(1), []string{"1:log:warning The worker wrote a line of 41943041 bytes, which was left out: " + long[:200-len(" … (cut)")] + " … (cut)", "1:metric:1"}},
		"an event that is too long":  {`{"v":1,"event":"metric","step":{"a":"` + long[:70<<10] + `"}}` + "\n", []string{"1:log:warning The worker wrote a metric event of more than 65536 bytes, which was left out"}},
		"terminal colours":           {`{"v":1,"event":"log","level":"info","msg":"\u001b[31mred\u001b[0m\u0007"}` + "\n", []string{"1:log:info red"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			f := agent.NewFollower(dir, 32<<20)
			if got := read(t, f, false); got != nil {
				t.Errorf("read %v of nothing", got)
			}
			write(t, filepath.Join(dir, "events.jsonl"), test.content)
			got := append(told(read(t, f, false)), told(read(t, f, true))...)
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %.2000q\nwant %.2000q", got, test.want)
			}
		})
	}
}

// A result is never dropped for its size.
func TestLongResult(t *testing.T) {
	labels := make([]string, 20000)
	for i := range labels {
		labels[i] = fmt.Sprintf("label %d", i)
	}
	b, err := json.Marshal(api.Event{V: 1, Event: api.EventResult, Status: "success", PredictionsFile: "p.jsonl", LabelOrder: labels})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "events.jsonl"), string(b)+"\n")
	got := read(t, agent.NewFollower(dir, 32<<20), true)
	if len(got) != 1 || got[0].Event != api.EventResult || got[0].PredictionsFile != "p.jsonl" || got[0].LabelOrder != nil || len(got[0].Notes) != 1 {
		t.Errorf("got %+v", got)
	}
}

// A scheduler starts the worker anew: the earlier attempt's file is read to its end, then the new one from its begin.
func TestAttempts(t *testing.T) {
	dir := t.TempDir()
	events := filepath.Join(dir, "events.jsonl")
	f := agent.NewFollower(dir, 1<<20)
	write(t, events, line(1)+line(2)+line(3)[:9])
	got := told(read(t, f, false))
	write(t, events, line(3)[9:]+line(4)+`{"half`)
	if err := os.Rename(events, filepath.Join(dir, "events.1.jsonl")); err != nil {
		t.Fatal(err)
	}
	write(t, events, line(5))
	got = append(got, told(read(t, f, false))...)
	// Without a rename: cut to nothing and written anew, first to less, then to as much as before.
	for _, content := range []string{"", line(6) + line(7)} {
		if err := os.WriteFile(events, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got = append(got, told(read(t, f, false))...)
	}
	if err := os.WriteFile(events, []byte(line(8)+line(9)+line(10)), 0o600); err != nil {
		t.Fatal(err)
	}
	got = append(got, told(read(t, f, true))...)
	want := []string{
		"1:metric:1", "1:metric:2", "1:metric:3", "1:metric:4",
		`1:log:warning The worker wrote a line of 6 bytes that is no event (unexpected end of JSON input): {"half`,
		"2:metric:5", "3:metric:6", "3:metric:7", "4:metric:8", "4:metric:9", "4:metric:10",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}

// However the bytes arrive, and whoever goes on reading after whom, the events are the same (T47).
func FuzzFollow(f *testing.F) {
	f.Add([]byte(line(1)+"half\n"+line(2)), uint64(1))
	f.Add([]byte("\x00\x00"+line(1)+"\xf0\x9f\x98\x80 "+line(2)[:30]), uint64(2))
	f.Add([]byte(`{"v":1,"event":"log","msg":"`+strings.Repeat("\U0001F600\r\n\x1b[0m", 600)+`"}`+"\n"+line(3)), uint64(3))
	f.Fuzz(func(t *testing.T, content []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		whole, pieces := t.TempDir(), t.TempDir()
		names := []string{"events.jsonl", "stdout.log"}
		for _, name := range names {
			write(t, filepath.Join(whole, name), string(content))
		}
		want := read(t, agent.NewFollower(whole, 5000), true)

		follower := agent.NewFollower(pieces, 5000)
		var got []api.Event
		for rest := content; len(rest) > 0; {
			n := 1 + r.IntN(min(len(rest), 4000))
			for _, name := range names {
				write(t, filepath.Join(pieces, name), string(rest[:n]))
			}
			rest = rest[n:]
			got = append(got, read(t, follower, false)...)
			if r.IntN(3) == 0 {
				follower = follower.Again()
			}
		}
		got = append(got, read(t, follower, true)...)
		check(t, got, want)
	})
}

func check(t *testing.T, got, want []api.Event) {
	t.Helper()
	split := func(events []api.Event) (worker []string, output string) {
		for _, e := range events {
			if !utf8.ValidString(e.Msg) || strings.ContainsAny(e.Msg, "\x00\x07\x1b\r\u0085") {
				t.Errorf("%q is not clean", e.Msg)
			}
			if b, err := json.Marshal(e); err != nil || len(b) > 6*(64<<10) {
				t.Errorf("an event has %d bytes: %v", len(b), err)
			}
			if e.Source != "" {
				output += e.Msg + "\n"
			} else {
				worker = append(worker, told([]api.Event{e})...)
			}
		}
		return worker, output
	}
	gotWorker, _ := split(got)
	wantWorker, _ := split(want)
	if !reflect.DeepEqual(gotWorker, wantWorker) {
		t.Errorf("in pieces %q\nat once %q", gotWorker, wantWorker)
	}
}

// Output comes as it was printed, whatever the pieces.
func TestOutputInPieces(t *testing.T) {
	var printed strings.Builder
	r := rand.New(rand.NewPCG(7, 7))
	for i := range 2000 {
		fmt.Fprintf(&printed, "%d %s\n", i, strings.Repeat("é", r.IntN(80)))
	}
	dir := t.TempDir()
	follower := agent.NewFollower(dir, 1<<20)
	var got strings.Builder
	collect := func(final bool) {
		for _, e := range read(t, follower, final) {
			if e.Source != "stdout" {
				t.Fatalf("event %+v", e)
			}
			got.WriteString(e.Msg + "\n")
		}
	}
	for rest := printed.String(); rest != ""; {
		n := 1 + r.IntN(min(len(rest), 9000))
		write(t, filepath.Join(dir, "stdout.log"), rest[:n])
		rest = rest[n:]
		collect(false)
		if r.IntN(4) == 0 {
			follower = follower.Again()
		}
	}
	collect(true)
	if got.String() != printed.String() {
		t.Errorf("got %d bytes, want the %d that were printed", got.Len(), printed.Len())
	}
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":                     "plain\ttext\n",
		"a\x1b[1;31mred\x1b[0mb":            "aredb",
		"\x1b]0;title\x07x\x1b]8;;u\x1b\\y": "xy",
		"10%\r20%\r\ndone":                  "10%\n20%\ndone",
		"bell\x07nul\x00del\x7fc1\u0085":    "bellnuldelc1",
		"caf\xc3\xa9 \xff\xfe!":             "café \uFFFD!",
		"\x1b":                              "",
		"\x1b[12":                           "",
		"\x1b(Bx":                           "x",
	} {
		if got := agent.Clean([]byte(in)); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// What the outbox had no space for is read again when there is some.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	d, err := agent.NewDrainer(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, full := range []bool{false, true, true, false, true, false} {
		write(t, filepath.Join(dir, "events.jsonl"), line(i))
		write(t, filepath.Join(dir, "stderr.log"), fmt.Sprintf("%d\n", i))
		failed, err := d.Drain(t.Context(), full)
		if err != nil || failed != full {
			t.Fatalf("disk full: %v, %v; want %v", failed, err, full)
		}
	}
	events, err := d.Events()
	if err != nil {
		t.Fatal(err)
	}
	var metrics []float64
	var printed []string
	for i, e := range events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has number %d", i+1, e.Seq)
		}
		if e.Event == api.EventMetric {
			metrics = append(metrics, *e.Value)
		} else {
			printed = append(printed, e.Msg)
		}
	}
	if !reflect.DeepEqual(metrics, []float64{0, 1, 2, 3, 4, 5}) || strings.Join(printed, "\n") != "0\n1\n2\n3\n4\n5" {
		t.Errorf("metrics %v, printed %q", metrics, printed)
	}
}
