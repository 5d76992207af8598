package handlers_test

import (
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"potato/handlers"
)

// The matrix of A4: who is an admin without any key.
func TestDebug(t *testing.T) {
	for _, c := range []struct {
		name   string
		debug  bool
		remote string
		host   string
		header string
		admin  bool
	}{
		{"local", true, "127.0.0.1:4", "localhost:8000", "", true},
		{"by address", true, "127.0.0.1:4", "127.0.0.1:8000", "", true},
		{"IPv6", true, "[::1]:4", "[::1]:8000", "", true},
		{"IPv6 without port", true, "[::1]:4", "[::1]", "", true},
		{"mapped address", true, "[::ffff:127.0.0.1]:4", "localhost", "", true},
		{"capitals", true, "127.0.0.1:4", "LOCALHOST:8000", "", true},
		{"not debug", false, "127.0.0.1:4", "localhost:8000", "", false},
		{"other machine", true, "192.0.2.7:4", "localhost:8000", "", false},
		{"private network", true, "10.0.0.7:4", "localhost:8000", "", false},
		{"rebound name", true, "127.0.0.1:4", "evil.example:8000", "", false},
		{"name that begins so", true, "127.0.0.1:4", "localhost.evil.example", "", false},
		{"number that begins so", true, "127.0.0.1:4", "127.0.0.1.evil.example", "", false},
		{"X-Forwarded-For", true, "127.0.0.1:4", "localhost:8000", "X-Forwarded-For", false},
		{"X-Forwarded-Proto", true, "127.0.0.1:4", "localhost:8000", "X-Forwarded-Proto", false},
		{"X-Forwarded-Anything", true, "127.0.0.1:4", "localhost:8000", "X-Forwarded-Anything", false},
		{"Forwarded", true, "127.0.0.1:4", "localhost:8000", "Forwarded", false},
		{"Via", true, "127.0.0.1:4", "localhost:8000", "Via", false},
		{"X-Real-IP", true, "127.0.0.1:4", "localhost:8000", "X-Real-IP", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, handlers.Options{AdminKey: goodKey, Debug: c.debug})
			changes := []change{noKey, from(c.remote), host(c.host)}
			if c.header != "" {
				changes = append(changes, header(c.header, "127.0.0.1"))
			}
			a := s.get("/metrics", changes...)
			if got := a.StatusCode == 200; got != c.admin {
				t.Errorf("status %d, want admin %v", a.StatusCode, c.admin)
			}
			s.get("/metrics", append(changes, header("X-API-Key", goodKey))...).ok(t, 200)
		})
	}
}

// A key that can be guessed works on the server's machine only, so that a page that has its name point to loopback
// (DNS rebinding) cannot guess it there.
func TestWeakKeyStaysOnTheMachine(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: "change-me"})
	s.get("/metrics").ok(t, 200)
	s.get("/metrics", host("localhost:8000")).ok(t, 200)
	for name, c := range map[string]change{
		"rebound name": host("evil.example"), "other machine": from("192.0.2.7:4"), "proxy": header("X-Forwarded-For", "192.0.2.7"),
	} {
		d := s.get("/metrics", c).refused(t, 403, "weak_key")
		if !strings.Contains(d.Hint, "16 characters") {
			t.Errorf("%s: hint %q", name, d.Hint)
		}
		// The answer is the same for any key: it tells nobody whether they guessed right.
		s.get("/metrics", c, header("X-API-Key", "other")).refused(t, 403, "weak_key")
		s.do("POST", below("/session"), map[string]string{"api_key": "change-me"}, c).refused(t, 403, "weak_key")
	}
	s.get("/metrics", header("X-API-Key", "other")).refused(t, 401, "wrong_key")

	anywhere := serve(t, handlers.Options{AdminKey: "change-me", WeakKeyAnywhere: true})
	anywhere.get("/metrics", host("evil.example"), from("192.0.2.7:4")).ok(t, 200)
}

func TestWithoutAKeyNobodyIsAdmin(t *testing.T) {
	s := serve(t, handlers.Options{})
	s.get("/metrics").refused(t, 401, "unauthenticated")
	s.get("/metrics", header("X-API-Key", "")).refused(t, 401, "unauthenticated")
	s.get("/metrics", header("X-API-Key", "x")).refused(t, 401, "no_admin_key")
	d := s.do("POST", below("/session"), map[string]string{"api_key": "x"}).refused(t, 401, "no_admin_key")
	if !strings.Contains(d.Detail, "admin_api_key") {
		t.Errorf("detail %q", d.Detail)
	}
}

// signIn returns the cookie of a session.
func (s *server) signIn(key string, changes ...change) *http.Cookie {
	s.t.Helper()
	a := s.do("POST", below("/session"), map[string]string{"api_key": key}, append([]change{noKey}, changes...)...).ok(s.t, 204)
	cookies := a.Cookies()
	if len(cookies) != 1 {
		s.t.Fatalf("got %d cookies", len(cookies))
	}
	return cookies[0]
}

func carry(c *http.Cookie) change { return func(r *http.Request) { r.AddCookie(c) } }

func TestSession(t *testing.T) {
	now := time.Now()
	var ahead atomic.Int64
	s := serve(t, handlers.Options{AdminKey: goodKey, Now: func() time.Time { return now.Add(time.Duration(ahead.Load())) }})
	c := s.signIn(goodKey)
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/admin/training" || c.Secure || c.MaxAge <= 0 || len(c.Value) < 26 {
		t.Errorf("cookie %v", c)
	}
	if c := s.signIn(goodKey, header("X-Forwarded-Proto", "https")); !c.Secure {
		t.Errorf("behind https the cookie is %v", c)
	}
	if again := s.signIn(goodKey); again.Value == c.Value {
		t.Error("two sign-ins share a token")
	}
	s.get("/metrics", noKey, carry(c)).ok(t, 200)
	s.get("/metrics", noKey, carry(&http.Cookie{Name: c.Name, Value: c.Value + "A"})).refused(t, 401, "unauthenticated")

	out := s.do("DELETE", below("/session"), nil, noKey, carry(c)).ok(t, 204)
	if gone := out.Cookies()[0]; gone.MaxAge >= 0 || gone.Value != "" {
		t.Errorf("sign-out left the cookie %v", gone)
	}
	s.get("/metrics", noKey, carry(c)).refused(t, 401, "unauthenticated")

	c = s.signIn(goodKey)
	ahead.Store(int64(7*24*time.Hour - time.Minute))
	s.get("/metrics", noKey, carry(c)).ok(t, 200)
	ahead.Store(int64(7*24*time.Hour + time.Second))
	s.get("/metrics", noKey, carry(c)).refused(t, 401, "unauthenticated")
}

// Cookies know no ports: two studies on one machine share one and must not sign each other out.
func TestTwoStudiesShareACookie(t *testing.T) {
	one, two := serve(t, handlers.Options{AdminKey: goodKey}), serve(t, handlers.Options{AdminKey: goodKey})
	c := two.signIn(goodKey, carry(one.signIn(goodKey)))
	one.get("/metrics", noKey, carry(c)).ok(t, 200)
	two.get("/metrics", noKey, carry(c)).ok(t, 200)
	out := one.do("DELETE", below("/session"), nil, noKey, carry(c)).ok(t, 204)
	two.get("/metrics", noKey, carry(out.Cookies()[0])).ok(t, 200)
	one.get("/metrics", noKey, carry(c)).refused(t, 401, "unauthenticated")
}

func TestSignInWithAWrongKey(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	const secret = "not-the-key-but-a-secret-too"
	a := s.do("POST", below("/session"), map[string]string{"api_key": secret}, noKey)
	a.refused(t, 401, "wrong_key")
	if a.Header.Get("WWW-Authenticate") == "" || a.Header.Get("Set-Cookie") != "" {
		t.Errorf("headers %v", a.Header)
	}
	for _, body := range []string{
		`{"api_key":"` + secret + `"`, `{"api_key":"x","other":"` + secret + `"}`, `{"api_key":{"a":"` + secret + `"}}`, `"` + secret + `"`, secret,
		`{"api_key":"` + strings.Repeat(secret, 100) + `"}`,
	} {
		a := s.do("POST", below("/session"), body, noKey)
		if a.StatusCode != 400 && a.StatusCode != 422 {
			t.Errorf("%.60s: status %d", body, a.StatusCode)
		}
		if strings.Contains(a.text, secret) {
			t.Errorf("the answer echoes the secret: %s", a.text)
		}
	}
	s.do("POST", below("/session"), `{"api_key":"`+strings.Repeat("x", 17<<10)+`"}`, noKey).refused(t, 413, "too_large")
	s.do("POST", below("/session"), "a=b", noKey, header("Content-Type", "text/plain")).refused(t, 415, "unsupported_media_type")
	for _, leak := range []string{secret, goodKey} {
		if strings.Contains(s.logs.String(), leak) {
			t.Errorf("the log has a key:\n%s", s.logs)
		}
	}
}

func TestSignInIsRateLimited(t *testing.T) {
	now := time.Now()
	var ahead atomic.Int64
	s := serve(t, handlers.Options{AdminKey: goodKey, Now: func() time.Time { return now.Add(time.Duration(ahead.Load())) }})
	try := func(key string, changes ...change) answer {
		return s.do("POST", below("/session"), map[string]string{"api_key": key}, append(changes, noKey)...)
	}
	// All at once: no more of them may pass than one after the other.
	var wrong, many atomic.Int64
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			switch try("wrong").StatusCode {
			case 401:
				wrong.Add(1)
			case 429:
				many.Add(1)
			}
		})
	}
	wg.Wait()
	if wrong.Load() != 10 || many.Load() != 30 {
		t.Errorf("%d tries passed and %d were refused, want 10 and 30", wrong.Load(), many.Load())
	}
	a := try(goodKey)
	a.refused(t, 429, "too_many_requests")
	if got := a.Header.Get("Retry-After"); got != "6" {
		t.Errorf("Retry-After is %q", got)
	}
	try(goodKey, from("192.0.2.7:1")).ok(t, 204)
	ahead.Store(int64(7 * time.Second))
	for range 20 { // who knows the key is not slowed down
		try(goodKey).ok(t, 204)
	}
	// From very many addresses the common limit holds.
	refused := false
	for i := range 200 {
		addr := netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}).String() + ":1"
		refused = refused || try("wrong", from(addr)).StatusCode == 429
	}
	if !refused {
		t.Error("200 addresses guessed without a limit")
	}
}

func TestForwardedAddressCountsFromTrustedProxiesOnly(t *testing.T) {
	exhaust := func(s *server, forwardedFor func(i int) string) (status int) {
		for i := range 11 {
			status = s.do("POST", below("/session"), map[string]string{"api_key": "wrong"}, noKey, header("X-Forwarded-For", forwardedFor(i))).StatusCode
		}
		return status
	}
	changing := func(i int) string { return netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}).String() }
	if got := exhaust(serve(t, handlers.Options{AdminKey: goodKey}), changing); got != 429 {
		t.Errorf("a forged address gets new tries: %d", got)
	}
	trusting := handlers.Options{AdminKey: goodKey, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	if got := exhaust(serve(t, trusting), changing); got != 401 {
		t.Errorf("behind a trusted proxy different senders share tries: %d", got)
	}
	forged := func(i int) string { return changing(i) + ", 192.0.2.7" }
	if got := exhaust(serve(t, trusting), forged); got != 429 {
		t.Errorf("what stands before the sender's address counts: %d", got)
	}
	ipv6 := func(i int) string { return "2001:db8::" + string(rune('a'+i%6)) }
	if got := exhaust(serve(t, trusting), ipv6); got != 429 {
		t.Errorf("addresses of one IPv6 line get tries each: %d", got)
	}
}

func TestCrossOriginWritesAreRefused(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	c := s.signIn(goodKey)
	own := strings.TrimPrefix(s.url, "http://")
	for name, change := range map[string]change{
		"other site": header("Sec-Fetch-Site", "cross-site"),
		"sister":     header("Sec-Fetch-Site", "same-site"),
		"origin":     header("Origin", "https://evil.example"),
		"null":       header("Origin", "null"),
	} {
		for _, path := range []string{"/session", "/runs", "/runs/20261129T192252-d3d870/cancel"} {
			d := s.do("POST", below(path), "{}", noKey, carry(c), change).refused(t, 403, "cross_origin")
			if !strings.Contains(d.Hint, "Host") {
				t.Errorf("%s: hint %q", name, d.Hint)
			}
		}
		s.do("DELETE", below("/session"), nil, noKey, carry(c), change).refused(t, 403, "cross_origin")
		s.do("DELETE", below("/session"), nil, change).refused(t, 403, "cross_origin") // with the key too
		s.get("/metrics", noKey, carry(c), change).ok(t, 200)
	}
	s.do("DELETE", below("/session"), nil, noKey, carry(c), header("Origin", "http://"+own)).ok(t, 204)
}
