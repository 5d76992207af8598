package supervisor

// EventCursor is a place in a run's events, for the tests.
type EventCursor = eventCursor

// NewEventCursor is the place after an event.
func NewEventCursor(path string, after int64) *EventCursor {
	return &eventCursor{path: path, seq: after}
}

// CursorEvents reads what has come since.
var CursorEvents = (*eventCursor).events
