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
	id, err := s.postToAgent(ctx)
	if err != nil {
		return nil, err
	}
	job, err := claim(ctx, agent, "agent")
	if err != nil {
		return nil, err
	}
	if err := s.running(ctx, agent, job); err != nil {
		return nil, err
	}

	const all = eventsASec * eventSeconds
	ctx, cancel := context.WithTimeout(ctx, 3*eventSeconds*time.Second)
	defer cancel()
	begin := time.Now()
	readers := make([]*reader, eventReaders)
	var reading, open sync.WaitGroup
	open.Add(eventReaders)
	for i := range readers {
		readers[i] = &reader{begin: begin}
		reading.Go(func() { readers[i].err = readers[i].follow(ctx, s, id, all, open.Done) })
	}
	open.Wait()
	before, err := s.ticks()
	if err != nil {
		return nil, err
	}
	sent, err := report2000(ctx, agent, job, begin, all)
	if err != nil {
		cancel()
		reading.Wait()
		return nil, err
	}
	reading.Wait()
	after, err := s.ticks()
	if err != nil {
		return nil, err
	}
	var delays []float64
	lost := 0
	for _, r := range readers {
		if r.err != nil {
			return nil, fmt.Errorf("a reader: %w", r.err)
		}
		delays = append(delays, r.delays...)
		lost += all - len(r.delays)
	}
	p95 := percentile(delays, 0.95)
	cpu := 100 * float64(after-before) / ticksASecond / sent.Seconds()
	b.say("%d events in %.1f s to %d readers: median %.1f ms, p95 %.1f ms, %d lost, %.0f%% of a core", all, sent.Seconds(), eventReaders,
		1000*median(delays), 1000*p95, lost, cpu)
	what := fmt.Sprintf("%d events a second to %d readers: ", eventsASec, eventReaders)
	return []row{
		{Name: "events", What: what + "p95", Unit: "s", Ours: []float64{p95}, Bar: atMost(0.1, "F3")},
		{Name: "events-rate", What: what + "taken a second", Unit: "/s", Ours: []float64{all / sent.Seconds()}, Bar: atLeast(0.95*eventsASec, "F3")},
		{Name: "events-lost", What: what + "lost", Unit: "lines", Ours: []float64{float64(lost)}, Bar: atMost(0, "F3")},
		{Name: "events-cpu", What: what + "the server's CPU", Unit: "% of a core", Ours: []float64{cpu}},
	}, givenUp(ctx, agent, job)
}

// report2000 reports lines at their pace, one report after the other, and returns how long it took. An agent that comes
// late sends what has gathered.
func report2000(ctx context.Context, c *api.Client, job api.Job, begin time.Time, all int) (time.Duration, error) {
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

// follow reads until the last line has come. Lines are to come in order, each once.
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
	for len(r.delays) < all {
		line, err := lines.ReadSlice('\n')
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
		if n != len(r.delays) {
			return fmt.Errorf("line %d comes where %d was due", n, len(r.delays))
		}
		r.delays = append(r.delays, (time.Since(r.begin) - time.Duration(written)*time.Microsecond).Seconds())
	}
	return nil
}
