package spa_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"

	"potato/spa"
)

var build = fstest.MapFS{
	".gitkeep":                    {},
	"index.html":                  {Data: []byte(`<meta name="csp-nonce" content="__NONCE__"><script src="/admin/training/assets/app-1a2b.js"></script>`)},
	"color-scheme.js":             {Data: []byte("theme()")},
	"assets/app-1a2b.js":          {Data: []byte("plain()")},
	"assets/app-1a2b.js.br":       {Data: []byte("in brotli")},
	"assets/app-1a2b.js.gz":       {Data: []byte("in gzip")},
	"assets/letters-3c4d.woff2":   {Data: []byte("font")},
	"assets/app-1a2b.js.map.json": {Data: []byte("{}")},
}

func serve(t *testing.T, files fstest.MapFS) string {
	t.Helper()
	h, err := spa.New(files)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

func do(t *testing.T, method, url string, header ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", "identity") // or the client asks for gzip and unpacks it unseen
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(body)
}

func TestRoutesOfTheAppGetTheApp(t *testing.T) {
	url := serve(t, build)
	for path, want := range map[string]int{
		"/admin/training":                              200,
		"/admin/training/":                             200,
		"/admin/training/index.html":                   200,
		"/admin/training/runs/20261129T192252-d3d870":  200,
		"/admin/training/assets/app-1a2b.js":           200,
		"/admin/training/color-scheme.js":              200,
		"/admin/training/assets/gone-9f9f.js":          404,
		"/admin/training/assets/gone":                  404,
		"/admin/training/assets/app-1a2b.js.br":        404,
		"/admin/training/favicon.ico":                  404,
		"/admin/training/.gitkeep":                     404,
		"/admin/training/api":                          404,
		"/admin/training/api/runs":                     404,
		"/admin/trainingfoo":                           404,
		"/":                                            404,
		"/admin":                                       404,
		"/admin/training/assets/..%2f..%2f..%2fgo.mod": 404,
	} {
		resp, body := do(t, http.MethodGet, url+path)
		if resp.StatusCode != want {
			t.Errorf("GET %s: got %d, want %d", path, resp.StatusCode, want)
		}
		if want == 404 && strings.Contains(body, "<meta") {
			t.Errorf("GET %s: a missing file was answered with the app", path)
		}
	}
}

func TestEachPageHasItsOwnNonce(t *testing.T) {
	url := serve(t, build)
	seen := map[string]bool{}
	for range 3 {
		resp, body := do(t, http.MethodGet, url+"/admin/training")
		policy := resp.Header.Get("Content-Security-Policy")
		_, rest, _ := strings.Cut(policy, "'nonce-")
		nonce, _, _ := strings.Cut(rest, "'")
		if len(nonce) < 20 || seen[nonce] {
			t.Fatalf("nonce %q is short or was used before", nonce)
		}
		seen[nonce] = true
		if want := `content="` + nonce + `"`; !strings.Contains(body, want) || strings.Contains(body, "__NONCE__") {
			t.Errorf("the page does not carry the policy's nonce: %s", body)
		}
		for _, part := range []string{"default-src 'none'", "script-src 'self';", "frame-ancestors 'none'", "base-uri 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("policy %q lacks %q", policy, part)
			}
		}
		if strings.Contains(policy, "unsafe") {
			t.Errorf("policy %q allows something unsafe", policy)
		}
		if got := resp.Header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control: got %q, want no-store", got)
		}
	}
}

func TestAssetsComeCompressedAndStay(t *testing.T) {
	url := serve(t, build) + "/admin/training/assets/app-1a2b.js"
	for _, c := range []struct{ accept, encoding, body string }{
		{"identity", "", "plain()"},
		{"gzip", "gzip", "in gzip"},
		{"gzip, deflate, br, zstd", "br", "in brotli"},
		{"gzip;q=1.0, br;q=0", "gzip", "in gzip"},
		{"br;q=0, gzip;q=0", "", "plain()"},
		{"BR", "br", "in brotli"},
	} {
		resp, body := do(t, http.MethodGet, url, "Accept-Encoding", c.accept)
		if got := resp.Header.Get("Content-Encoding"); got != c.encoding || body != c.body {
			t.Errorf("Accept-Encoding %q: got %q %q, want %q %q", c.accept, got, body, c.encoding, c.body)
		}
		if got := resp.Header.Get("Vary"); got != "Accept-Encoding" {
			t.Errorf("Vary: got %q", got)
		}
		if got := resp.Header.Get("Cache-Control"); !strings.Contains(got, "immutable") {
			t.Errorf("Cache-Control: got %q, want immutable", got)
		}
		if got := resp.Header.Get("Content-Type"); got != "text/javascript; charset=utf-8" {
			t.Errorf("Content-Type: got %q", got)
		}
		etag := resp.Header.Get("ETag")
		again, _ := do(t, http.MethodGet, url, "Accept-Encoding", c.accept, "If-None-Match", etag)
		if etag == "" || again.StatusCode != http.StatusNotModified {
			t.Errorf("Accept-Encoding %q: ETag %q again: got %d, want 304", c.accept, etag, again.StatusCode)
		}
	}
	resp, _ := do(t, http.MethodGet, strings.Replace(url, "assets/app-1a2b.js", "color-scheme.js", 1))
	if got := resp.Header.Get("Cache-Control"); got != "no-cache" {
		t.Errorf("a file without a hash in its name: Cache-Control %q, want no-cache", got)
	}
}

func TestThePageIsReadOnly(t *testing.T) {
	url := serve(t, build)
	resp, body := do(t, http.MethodHead, url+"/admin/training")
	if resp.StatusCode != http.StatusOK || body != "" {
		t.Errorf("HEAD: got %d with %d bytes, want 200 with none", resp.StatusCode, len(body))
	}
	resp, _ = do(t, http.MethodPost, url+"/admin/training")
	if resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: got %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
}

func TestWithoutABuildItSaysWhatToRun(t *testing.T) {
	url := serve(t, fstest.MapFS{".gitkeep": {}})
	resp, body := do(t, http.MethodGet, url+"/admin/training")
	if resp.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "make spa") {
		t.Errorf("got %d %q, want 503 that names `make spa`", resp.StatusCode, body)
	}
	resp, _ = do(t, http.MethodGet, url+"/admin/training/api/runs")
	if resp.StatusCode != http.StatusNotFound {
		t.Errorf("the API's path: got %d, want 404", resp.StatusCode)
	}
}

// The embedded build is whatever this checkout has; either way the handler answers.
func TestEmbeddedBuildAnswers(t *testing.T) {
	s := httptest.NewServer(spa.Handler())
	defer s.Close()
	resp, body := do(t, http.MethodGet, s.URL+spa.Prefix)
	built := resp.StatusCode == http.StatusOK && strings.Contains(body, `id="root"`)
	missing := resp.StatusCode == http.StatusServiceUnavailable && strings.Contains(body, "make spa")
	if !built && !missing {
		t.Errorf("got %d %q", resp.StatusCode, body)
	}
}
