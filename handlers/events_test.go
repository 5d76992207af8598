package handlers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/handlers"
	"potato/runners/runnertest"
	"potato/supervisor"
)

// message is one of a stream.
type message struct {
	id   int64
	data string
}

// reading is an open stream.
type reading struct {
	t      testing.TB
	resp   *http.Response
	lines  *bufio.Scanner
	cancel context.CancelFunc
	pings  int
}

func (s *server) stream(path string, changes ...change) *reading {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	r := s.request(http.MethodGet, path, nil, append(changes, header("Accept", "text/event-stream"))...).WithContext(ctx)
	resp, err := client.Do(r)
	if err != nil {
		cancel()
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { cancel(); resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
		s.t.Fatalf("status %d, headers %v", resp.StatusCode, resp.Header)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	return &reading{s.t, resp, lines, cancel, 0}
}

// next is the next message, and false at the end of the stream.
func (r *reading) next() (message, bool) {
	r.t.Helper()
	var m message
	for r.lines.Scan() {
		name, value, _ := strings.Cut(r.lines.Text(), ": ")
		switch name {
		case "id":
			m.id, _ = strconv.ParseInt(value, 10, 64)
		case "data":
			m.data = value
		case "":
			if value == "ping" {
				r.pings++
			} else if m.data != "" {
				return m, true
			}
		case "retry":
		default:
			r.t.Fatalf("unknown field %q", r.lines.Text())
		}
	}
	return m, false
}

func TestEventsAsJSON(t *testing.T) {
	s := films(t, "")
	id := s.trained()
	all := decode[api.EventList](t, s.get(run(id, "/events")).ok(t, 200))
	for i, e := range all.Events {
		if e.Seq != int64(i+1) {
			t.Errorf("event %d has seq %d", i, e.Seq)
		}
	}
	if n := len(all.Events); n < 3 || all.Next != int64(n) {
		t.Fatalf("%d events, next %d", n, all.Next)
	}
	rest := decode[api.EventList](t, s.get(run(id, "/events?after=1&limit=1")).ok(t, 200))
	if len(rest.Events) != 1 || rest.Events[0].Seq != 2 || rest.Next != 2 {
		t.Errorf("got %+v", rest)
	}
	for _, accept := range []string{"", "*/*", "application/json", "text/event-stream, application/json"} {
		if got := s.get(run(id, "/events"), header("Accept", accept)).ok(t, 200).Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("Accept %q: got %s", accept, got)
		}
	}
	s.get(run(id, "/events?after=-1")).refused(t, 422, "invalid_request")
}

// A stream that breaks goes on after the last event seen: none is lost, none comes twice.
func TestStreamResumesWithoutLoss(t *testing.T) {
	s := films(t, "")
	params, open := s.gate()
	id := s.train(params)
	first := s.stream(run(id, "/events"))
	var seen []int64
	for range 2 {
		m, ok := first.next()
		if !ok {
			t.Fatal("the stream ended while the run is under way")
		}
		seen = append(seen, m.id)
	}
	first.cancel()
	open()
	s.await(id, api.RunSuccess)
	second := s.stream(run(id, "/events"), header("Last-Event-ID", fmt.Sprint(seen[1])))
	for m, ok := second.next(); ok; m, ok = second.next() {
		var e api.Event
		if err := json.Unmarshal([]byte(m.data), &e); err != nil || e.Seq != m.id {
			t.Errorf("message %d: %v in %s", m.id, err, m.data)
		}
		seen = append(seen, m.id)
	}
	if err := second.lines.Err(); err != nil {
		t.Fatalf("the stream broke off: %v", err)
	}
	all := decode[api.EventList](t, s.get(run(id, "/events")).ok(t, 200))
	want := make([]int64, len(all.Events))
	for i := range want {
		want[i] = int64(i + 1)
	}
	if !slices.Equal(seen, want) {
		t.Errorf("saw %v, want %v", seen, want)
	}
	sse := header("Accept", "text/event-stream")
	s.get(run(id, "/events"), sse, header("Last-Event-ID", fmt.Sprint(len(want)))).ok(t, 204)
	s.get(run(id, fmt.Sprintf("/events?after=%d", len(want))), sse).ok(t, 204)
	// An id that is none of ours begins anew.
	if m, ok := s.stream(run(id, "/events"), header("Last-Event-ID", "abc")).next(); !ok || m.id != 1 {
		t.Errorf("got %+v, %v", m, ok)
	}
}

func TestStreamGivesSignsOfLife(t *testing.T) {
	s := serveStudy(t, runnertest.Study(t, ""), func(o *supervisor.Options) { o.LifeSign = 20 * time.Millisecond })
	params, open := s.gate()
	id := s.train(params)
	r := s.stream(run(id, "/events"))
	for range 2 { // the bundle, and the worker's status: then nothing until the gate opens
		r.next()
	}
	go func() {
		time.Sleep(200 * time.Millisecond) // only to leave time for signs of life: there is nothing to wait for
		open()
	}()
	for _, ok := r.next(); ok; _, ok = r.next() {
	}
	if r.pings < 2 {
		t.Errorf("%d pings", r.pings)
	}
}

func TestChanges(t *testing.T) {
	s := films(t, "")
	params, open := s.gate()
	id := s.train(params)
	s.await(id, api.RunRunning)
	r := s.stream(below("/changes"))
	read := func() api.Run {
		t.Helper()
		m, ok := r.next()
		if !ok {
			t.Fatal("the stream ended")
		}
		var run api.Run
		if err := json.Unmarshal([]byte(m.data), &run); err != nil {
			t.Fatal(err)
		}
		return run
	}
	if got := read(); got.RunID != id || got.Status != api.RunRunning {
		t.Errorf("first comes %s, %s", got.RunID, got.Status)
	}
	queued := s.train(nil)
	for got := read(); got.RunID != queued; got = read() {
	}
	open()
	for {
		if got := read(); got.RunID == queued && got.Status == api.RunSuccess {
			break
		}
	}
}

// What holds a stream open must not hold up the server's end, nor may a stream outlive it.
func TestStreamsEndWithTheServer(t *testing.T) {
	s := films(t, "")
	params, _ := s.gate()
	id := s.train(params)
	server := handlers.NewServer(handlers.Options{Supervisor: s.supervisor, AdminKey: goodKey}, http.NotFoundHandler())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	other := *s.server
	other.url, other.key = "http://"+l.Addr().String(), goodKey
	events := other.stream(run(id, "/events"))
	changes := other.stream(below("/changes"))
	events.next()
	changes.next()
	began := time.Now()
	must(t, server.Shutdown(t.Context()))
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("the shutdown took %v", took)
	}
	for _, r := range []*reading{events, changes} {
		for _, ok := r.next(); ok; _, ok = r.next() {
		}
		if err := r.lines.Err(); err != nil {
			t.Errorf("the stream broke off: %v", err)
		}
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
}

// Whoever leaves a stream frees what it held.
func TestStreamEndsWithItsReader(t *testing.T) {
	s := films(t, "")
	r := s.stream(below("/changes"))
	open := func() string {
		_, rest, _ := strings.Cut(s.get("/metrics").text, "\npotato_http_streams ")
		n, _, _ := strings.Cut(rest, "\n")
		return n
	}
	agenttest.Wait(t, "the stream to be open", func() (bool, string) { return open() == "1", open() })
	r.cancel()
	agenttest.Wait(t, "the stream to be closed", func() (bool, string) { return open() == "0", open() })
}

func TestHeadOfAStreamAnswersAtOnce(t *testing.T) {
	s := films(t, "")
	s.do(http.MethodHead, below("/changes"), nil).ok(t, 200)
}

func TestLog(t *testing.T) {
	s := films(t, "")
	id := s.trained()
	all := decode[api.LogLines](t, s.get(run(id, "/log")).ok(t, 200))
	if len(all.Lines) == 0 || all.Total != int64(len(all.Lines)) || !strings.Contains(all.Lines[0].Text, "60 items") {
		t.Fatalf("got %+v", all)
	}
	if got := decode[api.LogLines](t, s.get(run(id, "/log?q=60+ITEMS&from=1&limit=1")).ok(t, 200)); len(got.Lines) != 1 || got.Total != 1 {
		t.Errorf("got %+v", got)
	}
	for _, source := range []string{"stdout", "stderr", "agent"} {
		if got := decode[api.LogLines](t, s.get(run(id, "/log?source="+source)).ok(t, 200)); got.Lines == nil {
			t.Errorf("%s: lines are null", source)
		}
	}
	s.get(run(id, "/log?source=../spec.json")).refused(t, 422, "invalid_request")
}
