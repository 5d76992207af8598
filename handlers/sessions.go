package handlers

import (
	"crypto/rand"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	sessionCookie = "potato_training"
	sessionLife   = 7 * 24 * time.Hour
	maxSessions   = 1000 // signed-in browsers; the one that ends first makes room
	maxTokens     = 8    // in one cookie
)

// sessions are the signed-in browsers. They live in memory, as hashes of random tokens: a restart signs everyone out.
type sessions struct {
	now func() time.Time

	mu   sync.Mutex
	ends map[[sha256.Size]byte]time.Time
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, ends: map[[sha256.Size]byte]time.Time{}}
}

// start signs a browser in and returns its token.
func (s *sessions) start() string {
	token := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for len(s.ends) >= maxSessions {
		var first [sha256.Size]byte
		end := now.Add(2 * sessionLife)
		for k, t := range s.ends {
			if t.Before(end) {
				first, end = k, t
			}
		}
		delete(s.ends, first)
	}
	s.ends[sha256.Sum256([]byte(token))] = now.Add(sessionLife)
	return token
}

// valid reports whether the token is that of a session.
func (s *sessions) valid(token string) bool {
	key := sha256.Sum256([]byte(token))
	s.mu.Lock()
	defer s.mu.Unlock()
	end, ok := s.ends[key]
	if ok && !s.now().Before(end) {
		delete(s.ends, key)
		ok = false
	}
	return ok
}

func (s *sessions) end(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ends, sha256.Sum256([]byte(token)))
}

// Cookies know hosts but no ports, so two studies served by one machine share this one: its value is a list of tokens,
// of which each server knows its own and leaves the others alone.

// tokens are those that a request brings.
func tokens(r *http.Request) []string {
	var all []string
	for _, c := range r.CookiesNamed(sessionCookie) {
		for t := range strings.SplitSeq(c.Value, ".") {
			if t != "" && len(all) < maxTokens {
				all = append(all, t)
			}
		}
	}
	return all
}

// signedIn reports whether the request brings a session of this server.
func (s *sessions) signedIn(r *http.Request) bool {
	for _, t := range tokens(r) {
		if s.valid(t) {
			return true
		}
	}
	return false
}

// cookie carries the tokens, and takes the cookie away when there are none.
func cookie(r *http.Request, tokens []string) http.Cookie {
	c := http.Cookie{
		Name: sessionCookie, Value: strings.Join(tokens, "."), Path: "/admin/training",
		MaxAge: int(sessionLife.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
		// What a proxy says of https is believed without knowing the proxy: whoever lies harms only themself.
		Secure: r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https",
	}
	if len(tokens) == 0 {
		c.MaxAge = -1
	}
	return c
}
