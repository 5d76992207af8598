package handlers_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"

	"potato/handlers"
)

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

func TestCompression(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	for _, c := range []struct{ path, accept, want string }{
		{"/openapi.json", "gzip", "gzip"},
		{"/openapi.yaml", "br, gzip;q=0.5", "gzip"},
		{"/openapi.json", "*", "gzip"},
		{"/openapi.json", "gzip;q=0", ""},
		{"/openapi.json", "br, identity", ""},
		{"/openapi.json", "", ""},
		{"/healthz", "gzip", ""}, // too small to be worth it
		{"/admin/training", "gzip", ""},
	} {
		a := s.get(c.path, header("Accept-Encoding", c.accept)).ok(t, 200)
		if got := a.Header.Get("Content-Encoding"); got != c.want || a.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s for %q: got %q, Vary %q", c.path, c.accept, got, a.Header.Get("Vary"))
		}
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
	open := map[string]bool{"getHealth": true, "createSession": true, "getAgent": true, "getAgentChecksum": true}
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
		for method, op := range map[string]*huma.Operation{"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete} {
			if op == nil || len(op.Security) == 0 {
				continue
			}
			missing, wrong := "unauthenticated", "wrong_key"
			if op.Security[0]["agentToken"] != nil {
				missing, wrong = "token_unknown", "token_unknown"
			}
			path := strings.NewReplacer("{run_id}", "no-id-at-all", "{name}", url.PathEscape("a/b")).Replace(path) + "?limit=abc&format=x"
			a := s.do(method, path, "{broken", noKey)
			a.refused(t, 401, missing)
			if a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s %s: no WWW-Authenticate", method, path)
			}
			s.do(method, path, "{broken", header("X-API-Key", "wrong")).refused(t, 401, wrong)
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
