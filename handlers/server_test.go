package handlers_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
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
	logs *bytes.Buffer
	doc  *huma.OpenAPI
}

// remoteHeader lets a test speak from another address than loopback; the server never sees it.
const remoteHeader = "Test-Remote-Addr"

func serve(t testing.TB, o handlers.Options) *server {
	t.Helper()
	s := &server{t: t, key: o.AdminKey.Reveal(), logs: &bytes.Buffer{}, doc: handlers.New(chi.NewMux(), handlers.Options{}).OpenAPI()}
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
	for template, item := range s.doc.Paths {
		pattern := "^" + parameter.ReplaceAllString(regexp.QuoteMeta(template), `[^/]+`) + "$"
		if !regexp.MustCompile(pattern).MatchString(path) {
			continue
		}
		switch method {
		case http.MethodGet, http.MethodHead:
			return item.Get
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

func TestHealthNeedsNoKey(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	if got := s.get("/healthz", noKey).ok(t, 200).text; got != "{\"status\":\"ok\"}\n" {
		t.Errorf("got %q", got)
	}
}

func TestRootLeadsToThePage(t *testing.T) {
	s := serve(t, handlers.Options{})
	if got := s.get("/").ok(t, 302).Header.Get("Location"); got != "/admin/training" {
		t.Errorf("got %q (A5)", got)
	}
	for _, path := range []string{"/admin/training", "/admin/training/", "/admin/training/runs/20261129T192252-d3d870", "/admin/training/apiary"} {
		if got := s.get(path).ok(t, 200).text; got != "the page" {
			t.Errorf("%s: got %q", path, got)
		}
	}
}

func TestDocumentNeedsNoKey(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	yaml := s.get("/openapi.yaml", noKey).ok(t, 200)
	if !strings.HasPrefix(yaml.text, "components:") || yaml.Header.Get("Content-Type") != "application/openapi+yaml" {
		t.Errorf("got %s of %q", yaml.Header.Get("Content-Type"), yaml.text[:20])
	}
	var doc struct {
		Paths map[string]any
	}
	packed := s.request(http.MethodGet, "/openapi.json", nil, noKey)
	resp, err := client.Do(packed) // the client unpacks gzip by itself
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if !resp.Uncompressed {
		t.Error("the document was sent without gzip")
	}
	if err := json.NewDecoder(resp.Body).Decode(&doc); err != nil || len(doc.Paths) < 15 {
		t.Errorf("%d paths, %v", len(doc.Paths), err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	for _, path := range []string{"/nope", "/admin", "/admin/training/api", "/admin/training/api/", "/admin/training/api/nope", "/openapi-3.0.json", "/docs", "/schemas/Run.json", "/admin/training/api/../status"} {
		s.get(path).refused(t, 404, "not_found")
	}
	a := s.do(http.MethodPut, below("/runs"), nil)
	a.refused(t, 405, "method_not_allowed")
	if got := a.Header.Get("Allow"); got != "GET, HEAD, POST" {
		t.Errorf("Allow is %q", got)
	}
	for _, method := range []string{"TRACE", "OPTIONS", "PATCH", "DELETE"} {
		a := s.do(method, below("/backends"), nil)
		a.refused(t, 405, "method_not_allowed")
		if got := a.Header.Get("Allow"); got != "GET, HEAD" {
			t.Errorf("%s: Allow is %q", method, got)
		}
	}
	s.do("FROBNICATE", "/nope", nil).refused(t, 404, "not_found")
}

func TestHeadIsGetWithoutBody(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	if a := s.do(http.MethodHead, "/healthz", nil).ok(t, 200); a.text != "" {
		t.Errorf("got a body: %q", a.text)
	}
	s.do(http.MethodHead, below("/runs"), nil, noKey).ok(t, 401)
}

func TestEveryAnswerCarriesTheSecurityHeaders(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	for _, path := range []string{"/healthz", "/nope", "/", "/metrics", "/openapi.json", "/admin/training", below("/runs")} {
		h := s.get(path, noKey).Header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if h.Get("Content-Security-Policy") == "" || h.Get("Cache-Control") == "" || h.Get("X-Request-Id") == "" {
			t.Errorf("%s: %v", path, h)
		}
		if got := h.Get("Access-Control-Allow-Origin"); got != "" {
			t.Errorf("%s lets %s read", path, got)
		}
	}
}

// Every operation asks for a key but those that are named here (A3).
func TestEveryOperationHasSecurity(t *testing.T) {
	open := map[string]bool{"getHealth": true, "createSession": true}
	doc := handlers.New(chi.NewMux(), handlers.Options{}).OpenAPI()
	n := 0
	for path, item := range doc.Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Patch, item.Delete, item.Head} {
			if op == nil {
				continue
			}
			n++
			if (len(op.Security) == 0) != open[op.OperationID] {
				t.Errorf("%s %s: security %v", op.OperationID, path, op.Security)
			}
		}
	}
	if n < 18 {
		t.Errorf("the document has %d operations only", n)
	}
}

// Without a key every operation is a 401, whatever else is wrong with the request: strangers learn nothing from validation.
func TestNoKeyIsSaidFirst(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	for path, item := range s.doc.Paths {
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "DELETE": item.Delete} {
			if op == nil || len(op.Security) == 0 {
				continue
			}
			path := strings.NewReplacer("{run_id}", "no-id-at-all", "{name}", url.PathEscape("a/b")).Replace(path) + "?limit=abc&format=x"
			a := s.do(method, path, "{broken", noKey)
			a.refused(t, 401, "unauthenticated")
			if a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s: no WWW-Authenticate", method, path)
			}
			s.do(method, path, "{broken", header("X-API-Key", "wrong")).refused(t, 401, "wrong_key")
		}
	}
	s.get("/metrics", noKey).refused(t, 401, "unauthenticated")
}

// A body that is not what its header says is the sender's fault.
func TestBrokenBody(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n", below("/session"))
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil || line != "HTTP/1.1 400 Bad Request\r\n" {
		t.Errorf("got %q, %v", line, err)
	}
}
