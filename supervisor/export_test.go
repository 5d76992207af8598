package supervisor

import (
	"sync/atomic"

	"potato/api"
)

// EventCursor is a place in a run's events, for the tests.
type EventCursor = eventCursor

// NewEventCursor is the place after an event.
func NewEventCursor(path string, after int64) *EventCursor {
	return &eventCursor{path: path, seq: after}
}

// CursorEvents reads what has come since.
var CursorEvents = (*eventCursor).events

// Shared are the readers of pages that follow one run's events.
type Shared struct {
	latest latestRead
	size   atomic.Int64
}

// Size says how long the file is.
func (s *Shared) Size(n int64) { s.size.Store(n) }

// Read reads what has come since, or takes it over from another page.
func (s *Shared) Read(c *EventCursor) ([]api.Event, error) { return s.latest.share(c, &s.size)() }
