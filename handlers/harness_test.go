package handlers_test

import (
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"mime"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"potato/handlers"
)

const goodKey = "a-key-of-more-than-sixteen-characters"

// server is the real handler behind a real listener. Every answer that a test gets from it is held against the document.
type server struct {
	t    testing.TB
	url  string
	key  string
	logs *logBook
	doc  *huma.OpenAPI
}

// logBook is the server's log, read while it is written.
type logBook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBook) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logBook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// remoteHeader lets a test speak from another address than loopback; the server never sees it.
const remoteHeader = "Test-Remote-Addr"

func serve(t testing.TB, o handlers.Options) *server {
	t.Helper()
	s := &server{t: t, key: o.AdminKey.Reveal(), logs: &logBook{}, doc: handlers.New(chi.NewMux(), handlers.Options{}).OpenAPI()}
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(s.logs, nil))
	}
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "the page") })
	inner := handlers.NewServer(o, page)
	ts := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if from := r.Header.Get(remoteHeader); from != "" {
			r.RemoteAddr = from
			r.Header.Del(remoteHeader)
		}
		inner.Handler.ServeHTTP(w, r)
	}))
	ts.Config.ErrorLog = slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug)
	ts.Start()
	t.Cleanup(func() {
		// Streams end first, as they do when the server goes down: Close waits for them.
		if err := inner.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Errorf("shut down: %v", err)
		}
		ts.Close()
	})
	s.url = ts.URL
	return s
}

// answer is what came back, read whole.
type answer struct {
	*http.Response
	text string
}

type change func(*http.Request)

func header(name, value string) change { return func(r *http.Request) { r.Header.Set(name, value) } }
func from(addr string) change          { return header(remoteHeader, addr) }
func host(h string) change             { return func(r *http.Request) { r.Host = h } }
func noKey(r *http.Request)            { r.Header.Del("X-API-Key") }

func (s *server) request(method, path string, body any, changes ...change) *http.Request {
	s.t.Helper()
	var b io.Reader
	switch v := body.(type) {
	case nil:
	case string:
		b = strings.NewReader(v)
	default:
		raw, err := json.Marshal(v)
		if err != nil {
			s.t.Fatal(err)
		}
		b = bytes.NewReader(raw)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, b)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if s.key != "" {
		r.Header.Set("X-API-Key", s.key)
	}
	for _, c := range changes {
		c(r)
	}
	return r
}

var client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

func (s *server) do(method, path string, body any, changes ...change) answer {
	s.t.Helper()
	resp, err := client.Do(s.request(method, path, body, changes...))
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatalf("read the answer to %s %s: %v", method, path, err)
	}
	a := answer{resp, string(text)}
	s.documented(a)
	return a
}

func (s *server) get(path string, changes ...change) answer {
	s.t.Helper()
	return s.do(http.MethodGet, path, nil, changes...)
}

// below is a path below the admin routes.
func below(path string) string { return handlers.Prefix + path }

// documented fails the test when the document does not have the answer (A3).
func (s *server) documented(a answer) {
	s.t.Helper()
	method, path := a.Request.Method, a.Request.URL.EscapedPath()
	op := s.operation(method, path)
	if op == nil {
		return
	}
	status := strconv.Itoa(a.StatusCode)
	r := op.Responses[status]
	if r == nil {
		s.t.Errorf("%s %s answered %s, which the document does not name", method, path, status)
		return
	}
	if a.text == "" && len(r.Content) == 0 || method == http.MethodHead || a.text == "" && a.StatusCode == http.StatusNoContent {
		return
	}
	kind, _, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || r.Content[kind] == nil {
		s.t.Errorf("%s %s answered %s with content type %q, which the document does not name", method, path, status, a.Header.Get("Content-Type"))
	}
	if a.StatusCode >= 400 {
		a.problem(s.t)
	}
}

var parameter = regexp.MustCompile(`\\\{[a-z_]+\\\}`)

func (s *server) operation(method, path string) *huma.Operation {
	// Of the templates that match the longest is meant: {arch}.sha256, not {arch}.
	for _, template := range slices.SortedFunc(maps.Keys(s.doc.Paths), func(a, b string) int { return len(b) - len(a) }) {
		pattern := "^" + parameter.ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`) + "$"
		if !regexp.MustCompile(pattern).MatchString(path) {
			continue
		}
		switch item := s.doc.Paths[template]; method {
		case http.MethodHead:
			if item.Head != nil {
				return item.Head
			}
			return item.Get
		case http.MethodGet:
			return item.Get
		case http.MethodPut:
			return item.Put
		case http.MethodPatch:
			return item.Patch
		case http.MethodPost:
			return item.Post
		case http.MethodDelete:
			return item.Delete
		}
	}
	return nil
}

// problem reads a problem document and holds it to its form.
func (a answer) problem(t testing.TB) handlers.ErrorDocument {
	t.Helper()
	var d handlers.ErrorDocument
	if got := a.Header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("%s %s: content type %q, want application/problem+json: %s", a.Request.Method, a.Request.URL, got, a.text)
		return d
	}
	if err := json.Unmarshal([]byte(a.text), &d); err != nil {
		t.Fatalf("%v in %s", err, a.text)
	}
	if d.Status != a.StatusCode || d.Title == "" || d.Code == "" || d.Detail == "" || d.Type == "" {
		t.Errorf("incomplete problem document, status %d: %s", a.StatusCode, a.text)
	}
	return d
}

func (a answer) refused(t testing.TB, status int, code string) handlers.ErrorDocument {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL, a.StatusCode, status, a.text)
	}
	d := a.problem(t)
	if d.Code != code {
		t.Errorf("%s %s: code %q, want %q: %s", a.Request.Method, a.Request.URL, d.Code, code, a.text)
	}
	return d
}

func (a answer) ok(t testing.TB, status int) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("%s %s: status %d, want %d: %s", a.Request.Method, a.Request.URL, a.StatusCode, status, a.text)
	}
	return a
}

func decode[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.text), &v); err != nil {
		t.Fatalf("%v in %s", err, a.text)
	}
	return v
}
