package handlers

import (
	"net/netip"
	"sync"
	"time"
)

// limiter bounds how often keys can be guessed at sign-in: so many tries at once, then one now and again, for each sender
// and for all of them together.
type limiter struct {
	now func() time.Time

	mu      sync.Mutex
	all     bucket
	senders map[string]bucket
}

// bucket holds tries: full at first, filled again over time.
type bucket struct {
	spent float64
	at    time.Time
}

const (
	senderTries, senderRefill = 10, 6 * time.Second
	allTries, allRefill       = 100, time.Second
	maxSenders                = 10_000
)

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, senders: map[string]bucket{}}
}

// take spends a try of the sender's, or says how long to wait for one. The try is taken before the key is looked at, so
// that many at once get no more of them; refund gives it back to whoever knew the key.
func (l *limiter) take(sender string) (wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	sender = network(sender)
	one, oneWait := l.senders[sender].take(now, senderTries, senderRefill)
	all, allWait := l.all.take(now, allTries, allRefill)
	if wait = max(oneWait, allWait); wait > 0 {
		return wait
	}
	if len(l.senders) >= maxSenders {
		l.forget(now)
	}
	l.senders[sender], l.all = one, all
	return 0
}

func (l *limiter) refund(sender string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sender = network(sender)
	if b, ok := l.senders[sender]; ok {
		b.spent = max(b.spent-1, 0)
		l.senders[sender] = b
	}
	l.all.spent = max(l.all.spent-1, 0)
}

// forget drops senders that have all their tries again, and if there are none all of them: the common limit still holds.
func (l *limiter) forget(now time.Time) {
	for s, b := range l.senders {
		if b.left(now, senderRefill) == 0 {
			delete(l.senders, s)
		}
	}
	if len(l.senders) >= maxSenders {
		clear(l.senders)
	}
}

func (b bucket) left(now time.Time, refill time.Duration) float64 {
	return max(b.spent-float64(now.Sub(b.at))/float64(refill), 0)
}

func (b bucket) take(now time.Time, tries float64, refill time.Duration) (bucket, time.Duration) {
	spent := b.left(now, refill) + 1
	if spent > tries {
		return b, time.Duration((spent - tries) * float64(refill))
	}
	return bucket{spent: spent, at: now}, 0
}

// network is the sender as far as one person holds it: an IPv6 address is one of 2^64 of the same line.
func network(sender string) string {
	a, err := netip.ParseAddr(sender)
	if err != nil || a.Is4() {
		return sender
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return sender
	}
	return p.String()
}
