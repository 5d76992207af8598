package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"potato/api"
)

const (
	eventReaders = 50
	eventsASec   = 2000
	eventSeconds = 10
	eventsAtOnce = 40 // in one report: one every 20 ms
	allEvents    = eventsASec * eventSeconds
)

// measureEvents lets one agent report 2,000 log lines a second while 50 pages follow the run's events. Each line carries
// its number and when it was written: a page's figure is how long a line took from there until it was read off the wire.
func measureEvents(ctx context.Context, b *bench) (rows []row, err error) {
	study, token, err := b.writeAgentStudy(ctx, "events", smallStudy)
	if err != nil {
		return nil, err
	}
	s, err := b.startOurs(ctx, study)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	agent, err := s.newAgent(token)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d events a second to %d readers: ", eventsASec, eventReaders)
	delay := row{Name: "events", What: what + "p95", Unit: "s", Bar: atMost(0.1, "F3")}
	rate := row{Name: "events-rate", What: what + "taken a second", Unit: "/s", Bar: atLeast(0.95*eventsASec, "F3")}
	cpu := row{Name: "events-cpu", What: what + "the server's CPU", Unit: "% of a core"}
	lost := 0
	for range min(b.repeats, 3) {
		o, err := s.spread(ctx, agent)
		if err != nil {
			return nil, err
		}
		p95 := percentile(o.delays, 0.95)
		b.say("%d events in %.1f s to %d readers: median %.1f ms, p95 %.1f ms, %d lost, %.0f%% of a core", allEvents, o.took.Seconds(),
			eventReaders, 1000*median(o.delays), 1000*p95, o.lost, o.cpu)
		delay.Ours = append(delay.Ours, p95)
		rate.Ours = append(rate.Ours, allEvents/o.took.Seconds())
		cpu.Ours = append(cpu.Ours, o.cpu)
		lost += o.lost
	}
	return []row{delay, rate, {Name: "events-lost", What: what + "lost", Unit: "lines", Ours: []float64{float64(lost)}, Bar: atMost(0, "F3")}, cpu}, nil
}

// observed is what became of one run's events.
type observed struct {
	delays []float64 // of every line at every reader, in seconds
	lost   int
	took   time.Duration // until the server had all of them
	cpu    float64       // of the server meanwhile, in percent of a core
}

// spread reports one run's events to the server while the readers follow.
func (s *server) spread(ctx context.Context, agent *api.Client) (o observed, err error) {
	id, err := s.postToAgent(ctx)
	if err != nil {
		return o, err
	}
	job, err := claim(ctx, agent, "agent-of-"+string(id))
	if err != nil {
		return o, err
	}
	if err := s.running(ctx, agent, job); err != nil {
		return o, err
	}
	limited, cancel := context.WithTimeout(ctx, 3*eventSeconds*time.Second)
	defer cancel()
	begin := time.Now()
	readers := make([]*reader, eventReaders)
	var reading, open sync.WaitGroup
	open.Add(eventReaders)
	for i := range readers {
		readers[i] = &reader{begin: begin}
		reading.Go(func() { readers[i].err = readers[i].follow(limited, s, id, allEvents, open.Done) })
	}
	defer reading.Wait()
	defer cancel()
	open.Wait()
	before, err := s.ticks()
	if err != nil {
		return o, err
	}
	if o.took, err = reportEvents(limited, agent, job, begin, allEvents); err != nil {
		return o, err
	}
	reading.Wait()
	after, err := s.ticks()
	if err != nil {
		return o, err
	}
	o.cpu = 100 * float64(after-before) / ticksASecond / o.took.Seconds()
	for _, r := range readers {
		if r.err != nil {
			return o, fmt.Errorf("a reader: %w", r.err)
		}
		o.delays = append(o.delays, r.delays...)
		o.lost += allEvents - len(r.delays)
	}
	return o, givenUp(ctx, agent, job)
}

// reportEvents reports lines at their pace, one report after the other, and returns how long it took. An agent that comes
// late sends what has gathered.
func reportEvents(ctx context.Context, c *api.Client, job api.Job, begin time.Time, all int) (time.Duration, error) {
	start := time.Now()
	answer, err := c.Progress(ctx, job, []api.Event{})
	if err != nil {
		return 0, err
	}
	next := answer.NextSeq
	due := func(n int) time.Time { return start.Add(time.Duration(n) * time.Second / eventsASec) }
	for n := 0; n < all; {
		if wait := time.Until(due(min(n+eventsAtOnce, all))); wait > 0 {
			select {
			case <-ctx.Done():
				return 0, ctx.Err()
			case <-time.After(wait):
			}
		}
		var batch []api.Event
		for ; n < all && len(batch) < 1000 && !time.Now().Before(due(n)); n++ {
			written := due(n).Sub(begin).Microseconds()
			batch = append(batch, api.Event{
				V: 1, Event: api.EventLog, Seq: next, T: float64(time.Now().UnixMicro()) / 1e6, Level: "info",
				Msg: fmt.Sprintf("@%d@%d@ epoch 3 of 10, batch %d: loss 0.4183, learning rate 2.5e-05", n, written, n),
			})
			next++
		}
		answer, err := c.Progress(ctx, job, batch)
		if err != nil {
			return 0, err
		}
		if answer.NextSeq != next {
			return 0, fmt.Errorf("the server wants event %d and not %d", answer.NextSeq, next)
		}
	}
	return time.Since(start), nil
}

// reader is a page that follows a run's events.
type reader struct {
	begin  time.Time
	delays []float64
	err    error
}

// follow reads until the last line has come, or the time is over. Lines are to come in order, each once at the most; those
// that are left out have no figure.
func (r *reader) follow(ctx context.Context, s *server, id api.RunID, all int, opened func()) (err error) {
	once := sync.OnceFunc(opened)
	defer once()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+"/admin/training/api/runs/"+string(id)+"/events", nil)
	if err != nil {
		return err
	}
	request.Header.Set("X-API-Key", adminKey)
	request.Header.Set("Accept", "text/event-stream")
	hc, err := api.NewHTTPClient("")
	if err != nil {
		return err
	}
	defer hc.CloseIdleConnections()
	answer, err := hc.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", request.URL, answer.Status)
	}
	once()
	lines := bufio.NewReaderSize(answer.Body, 256<<10)
	r.delays = make([]float64, 0, all)
	for next := 0; next < all; {
		line, err := lines.ReadSlice('\n')
		if ctx.Err() != nil {
			return nil // what has not come by now is lost
		}
		if err != nil {
			return fmt.Errorf("after %d lines: %w", len(r.delays), err)
		}
		parts := bytes.SplitN(line, []byte{'@'}, 4)
		if !bytes.HasPrefix(line, []byte("data: ")) || len(parts) < 4 {
			continue
		}
		n, wrong := strconv.Atoi(string(parts[1]))
		written, alsoWrong := strconv.ParseInt(string(parts[2]), 10, 64)
		if err := errors.Join(wrong, alsoWrong); err != nil {
			return err
		}
		if n < next {
			return fmt.Errorf("line %d comes where %d was due", n, next)
		}
		next = n + 1
		r.delays = append(r.delays, (time.Since(r.begin) - time.Duration(written)*time.Microsecond).Seconds())
	}
	return nil
}
