package supervisor

import (
	"sync"

	"potato/api"
)

// hub wakes those who wait for something to happen to a run. It carries no news itself: whoever wakes reads the files or
// the database, so nothing can be lost or come twice. Waiters take a channel first, then read, then wait on it.
type hub struct {
	mu      sync.Mutex
	runs    map[api.RunID]chan struct{} // closed at the run's next event or change
	any     chan struct{}               // closed at the next change of any run
	version uint64
	changed map[api.RunID]uint64 // version of each run's last change, since this server started
}

func newHub() *hub {
	return &hub{runs: map[api.RunID]chan struct{}{}, any: make(chan struct{}), changed: map[api.RunID]uint64{}}
}

// wait returns the channel that closes at the run's next event or change.
func (h *hub) wait(id api.RunID) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	ch, ok := h.runs[id]
	if !ok {
		ch = make(chan struct{})
		h.runs[id] = ch
	}
	return ch
}

// wake tells those who wait for the run's events.
func (h *hub) wake(id api.RunID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeLocked(id)
}

func (h *hub) wakeLocked(id api.RunID) {
	if ch, ok := h.runs[id]; ok {
		close(ch)
		delete(h.runs, id)
	}
}

// change tells everyone that the run's row has changed.
func (h *hub) change(id api.RunID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wakeLocked(id)
	h.version++
	h.changed[id] = h.version
	close(h.any)
	h.any = make(chan struct{})
}

// since lists the runs that changed after a version, and returns the present one with the channel that closes at the
// next change.
func (h *hub) since(version uint64) ([]api.RunID, uint64, <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var ids []api.RunID
	for id, v := range h.changed {
		if v > version {
			ids = append(ids, id)
		}
	}
	return ids, h.version, h.any
}
