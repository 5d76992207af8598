package supervisor

import (
	"slices"
	"sync"

	"potato/api"
)

// claims are the agents that wait for work, by their backend, the one that asked first in front. They wait in memory: an
// idle agent costs the database nothing.
type claims struct {
	mu      sync.Mutex
	waiting map[string][]*asker
	starved map[string]bool // backends with a run that had a place when the queue was looked at last, and nobody to take it
}

// asker is an agent's question for work.
type asker struct {
	who Agent
	q   api.ClaimRequest
	got chan claimed // has room for the one answer
}

// claimed is the answer: a run that is the agent's now, or why there is none. Neither means that the question came again
// on another connection.
type claimed struct {
	id  api.RunID
	err error
}

func newClaims() *claims { return &claims{waiting: map[string][]*asker{}, starved: map[string]bool{}} }

// ask lets an agent wait. The same question replaces the one before it, whose connection nobody listens to any more.
// starved says that a run may be there for the taking.
func (c *claims) ask(a *asker) (starved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.waiting[a.who.Backend]
	if i := slices.IndexFunc(list, func(b *asker) bool { return b.q.AgentID == a.q.AgentID && b.q.ClaimID == a.q.ClaimID }); i >= 0 {
		list[i].got <- claimed{}
		list = slices.Delete(list, i, i+1)
	}
	c.waiting[a.who.Backend] = append(list, a)
	return c.starved[a.who.Backend]
}

// leave takes an agent out of the line. False says that it is out already and its answer on the way.
func (c *claims) leave(a *asker) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.waiting[a.who.Backend]
	i := slices.Index(list, a)
	if i >= 0 {
		c.waiting[a.who.Backend] = slices.Delete(list, i, i+1)
	}
	return i >= 0
}

// next takes the agent out of the line that asked first, or notes that none was there.
func (c *claims) next(backend string) *asker {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.waiting[backend]
	if len(list) == 0 {
		c.starved[backend] = true
		return nil
	}
	a := list[0]
	c.waiting[backend] = slices.Delete(list, 0, 1)
	return a
}

// giveBack puts an agent back to the front of the line.
func (c *claims) giveBack(a *asker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[a.who.Backend] = slices.Insert(c.waiting[a.who.Backend], 0, a)
}

// fed forgets which backends had nobody: the queue is about to be looked at anew.
func (c *claims) fed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.starved)
}
