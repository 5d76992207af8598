// Package spa is the page of the server: it embeds the built React app and serves it below /admin/training under a
// strict Content-Security-Policy. Everything else in this folder is the app itself, in TypeScript.
package spa

import (
	"bytes"
	"crypto/rand"
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// Prefix is where the page lives. The admin API below it is never served from here.
const Prefix = "/admin/training"

const (
	indexName   = "index.html"
	noncePlace  = "__NONCE__"
	notBuilt    = "The page is not in this build: run `make spa`, then `make build`. The API works without it."
	forever     = "public, max-age=31536000, immutable"
	policyStart = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-"
	policyEnd   = "'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; " +
		"frame-ancestors 'none'"
)

// dist holds a .gitkeep alone until the app is built, so that the program compiles without Node.
//
//go:embed all:dist
var dist embed.FS

// Handler serves the embedded build, or says how to make one.
func Handler() http.Handler {
	built, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the directive above names the folder
	}
	h, err := New(built)
	if err != nil {
		panic(err) // embedded files are always readable
	}
	return h
}

// New serves a build that lies in files: index.html and assets/, each asset perhaps beside its .br and .gz.
func New(files fs.FS) (http.Handler, error) {
	assets, err := load(files)
	if err != nil {
		return nil, err
	}
	index, ok := assets[indexName]
	if !ok {
		return http.HandlerFunc(serveNotBuilt), nil
	}
	delete(assets, indexName)
	return &page{index: index.plain, assets: assets}, nil
}

type page struct {
	index  []byte
	assets map[string]asset
}

func (p *page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, ok := below(r.URL.Path)
	if !ok {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the page is read only", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if a, ok := p.assets[name]; ok {
		a.serve(w, r)
		return
	}
	// Only what may be a route of the app gets the app: a missing script answered with HTML is a riddle in the console.
	if name != indexName && (path.Ext(name) != "" || strings.HasPrefix(name, "assets/")) {
		http.NotFound(w, r)
		return
	}
	p.serveIndex(w, r)
}

// serveIndex puts a fresh nonce into the page and its policy: Mantine writes <style> elements at run time.
func (p *page) serveIndex(w http.ResponseWriter, r *http.Request) {
	nonce := rand.Text()
	h := w.Header()
	h.Set("Content-Security-Policy", policyStart+nonce+policyEnd)
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	body := bytes.ReplaceAll(p.index, []byte(noncePlace), []byte(nonce))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// below returns the path under the prefix, and whether it is the page's to answer.
func below(urlPath string) (string, bool) {
	rest, ok := strings.CutPrefix(urlPath, Prefix)
	if !ok || rest != "" && rest[0] != '/' {
		return "", false
	}
	name := strings.TrimPrefix(rest, "/")
	if name == "api" || strings.HasPrefix(name, "api/") {
		return "", false
	}
	return name, true
}

func serveNotBuilt(w http.ResponseWriter, r *http.Request) {
	if _, ok := below(r.URL.Path); !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, notBuilt, http.StatusServiceUnavailable)
}
