package supervisor

import (
	"context"
	"sync"
	"time"

	"potato/api"
)

const (
	eventsPerRead = 500  // events that a subscriber gets at once
	maxEvents     = 5000 // events of one answer
)

// Events reads at most limit events of a run after the sequence number.
func (s *Supervisor) Events(ctx context.Context, id api.RunID, after int64, limit int) (api.EventList, error) {
	if _, err := s.db.RunByID(ctx, id); err != nil {
		return api.EventList{}, err
	}
	if limit <= 0 || limit > maxEvents {
		limit = maxEvents
	}
	events, err := s.eventsAfter(id, after, limit)
	if err != nil {
		return api.EventList{}, err
	}
	list := api.EventList{Events: events, Next: after}
	if n := len(events); n > 0 {
		list.Next = events[n-1].Seq
	}
	return list, nil
}

func (s *Supervisor) eventsAfter(id api.RunID, after int64, limit int) ([]api.Event, error) {
	events := []api.Event{}
	err := readEvents(s.folder(id).file(eventsFile), after, func(e api.Event) bool {
		events = append(events, e)
		return len(events) < limit
	})
	return events, err
}

// Subscribe calls emit with every event of a run after the sequence number, the past ones first, and returns nil once the
// run has ended and all of them were handed over. An empty list is a sign of life, when there was nothing for a while.
func (s *Supervisor) Subscribe(ctx context.Context, id api.RunID, after int64, emit func([]api.Event) error) error {
	cursor := &eventCursor{path: s.folder(id).file(eventsFile), seq: after}
	for {
		next := s.hub.wait(id) // before reading: what comes after the read closes it
		over, read := false, cursor.events
		if a := s.activeRun(id); a != nil { // there is more to come, whatever its row says
			read = a.latest.share(cursor)
		} else {
			r, err := s.db.RunByID(ctx, id)
			if err != nil {
				return err
			}
			over = r.Status.Final()
		}
		events, err := read()
		switch {
		case err != nil:
			return err
		case len(events) > 0:
			if err := emit(events); err != nil {
				return err
			}
		case over:
			return nil
		default:
			if err := s.pause(ctx, next, func() error { return emit(nil) }); err != nil {
				return err
			}
		}
	}
}

// events reads the next piece for a subscriber.
func (c *eventCursor) events() (events []api.Event, err error) {
	err = c.read(func(e api.Event) bool {
		events = append(events, e)
		return len(events) < eventsPerRead
	})
	return events, err
}

// latestRead is the piece of a run's events that was read last. Many pages that follow a run are all at the same place, so
// one of them reads and decodes what has come, and the others take it over.
type latestRead struct {
	mu         sync.Mutex
	from, past eventCursor
	events     []api.Event
}

// share is a reader for one of those pages.
func (l *latestRead) share(c *eventCursor) func() ([]api.Event, error) {
	return func() ([]api.Event, error) {
		l.mu.Lock()
		if len(l.events) > 0 && l.from == *c {
			defer l.mu.Unlock()
			*c = l.past
			return l.events, nil
		}
		l.mu.Unlock() // one that reads the past must not hold up the others
		from := *c
		events, err := c.events()
		if len(events) > 0 {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.from, l.past, l.events = from, *c, events
		}
		return events, err
	}
}

// WatchRuns calls emit with every run that changed, whole, until ctx ends. Changes that come faster than emit returns are
// merged. The first call has the runs under way; an empty list is a sign of life.
func (s *Supervisor) WatchRuns(ctx context.Context, emit func([]api.Run) error) error {
	_, version, next := s.hub.since(0)
	runs, err := s.underWay(ctx)
	if err != nil {
		return err
	}
	if err := emit(runs); err != nil {
		return err
	}
	for {
		if err := s.pause(ctx, next, func() error { return emit(nil) }); err != nil {
			return err
		}
		var ids []api.RunID
		ids, version, next = s.hub.since(version)
		if len(ids) == 0 {
			continue
		}
		runs, err := s.runsByID(ctx, ids)
		if err != nil {
			return err
		}
		if err := emit(runs); err != nil {
			return err
		}
	}
}

// pause waits for next, and gives a sign of life when that takes long.
func (s *Supervisor) pause(ctx context.Context, next <-chan struct{}, alive func() error) error {
	timer := time.NewTimer(s.o.LifeSign)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-next:
		return nil
	case <-timer.C:
		return alive()
	}
}
