package supervisor

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
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
			read = a.latest.share(cursor, &a.log.size)
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

// latestRead are the pieces of a run's events that were read last. Many pages that follow a run are all at about the same
// place, so one of them reads and decodes what has come, and the others take it over.
type latestRead struct {
	mu     sync.Mutex
	pieces []piece // in order, each beginning where the one before it ends
}

// piece is what was read at once, and where it begins and ends.
type piece struct {
	from, past eventCursor
	events     []api.Event
}

// How much is kept for pages that are late, beside the newest piece.
const (
	keptPieces = 16
	keptBytes  = 1 << 20
)

// share is a reader for one of those pages. Past size there is nothing to read.
func (l *latestRead) share(c *eventCursor, size *atomic.Int64) func() ([]api.Event, error) {
	return func() ([]api.Event, error) {
		if c.at > 0 && c.at >= size.Load() {
			return nil, nil
		}
		l.mu.Lock()
		for _, p := range l.pieces {
			if p.from == *c {
				l.mu.Unlock()
				*c = p.past
				return p.events, nil
			}
		}
		if n := len(l.pieces); n > 0 && c.seq < l.pieces[n-1].past.seq {
			l.mu.Unlock() // one that reads the past must not hold up the others
			return c.events()
		}
		defer l.mu.Unlock() // the others want the same, and wait
		from := *c
		events, err := c.events()
		if len(events) > 0 {
			l.keep(piece{from, *c, events})
		}
		return events, err
	}
}

// keep adds the newest piece and drops old ones, all of them when it does not continue theirs.
func (l *latestRead) keep(p piece) {
	if n := len(l.pieces); n > 0 && l.pieces[n-1].past != p.from {
		l.pieces = nil
	}
	l.pieces = append(l.pieces, p)
	first := max(len(l.pieces)-keptPieces, 0)
	for first < len(l.pieces)-1 && p.from.at-l.pieces[first].from.at > keptBytes {
		first++
	}
	l.pieces = slices.Clone(l.pieces[first:])
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
