package spa

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// asset is one file of the build in the encodings that were made of it.
type asset struct {
	plain, gzip, brotli []byte
	etag                string // of the plain file, without quotes
	contentType         string
	cacheControl        string
}

// contentTypes is a list of our own because the system's differs from machine to machine.
var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".html":  "text/html; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".png":   "image/png",
	".svg":   "image/svg+xml",
	".txt":   "text/plain; charset=utf-8",
	".woff2": "font/woff2",
}

// load reads every file of the build; dot files are the repository's, not the build's.
func load(files fs.FS) (map[string]asset, error) {
	assets := map[string]asset{}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		ext := path.Ext(name)
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") || ext == ".br" || ext == ".gz" {
			return err
		}
		plain, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(plain)
		a := asset{plain: plain, etag: hex.EncodeToString(sum[:12]), contentType: contentTypes[ext], cacheControl: "no-cache"}
		if a.contentType == "" {
			a.contentType = "application/octet-stream"
		}
		if strings.HasPrefix(name, "assets/") { // the names hold a hash of the content
			a.cacheControl = forever
		}
		a.brotli, _ = fs.ReadFile(files, name+".br") // absent for what does not shrink
		a.gzip, _ = fs.ReadFile(files, name+".gz")
		assets[name] = a
		return nil
	})
	return assets, err
}

func (a asset) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Cache-Control", a.cacheControl)
	h.Set("Vary", "Accept-Encoding")
	accepted := r.Header.Get("Accept-Encoding")
	body, etag := a.plain, a.etag
	switch {
	case a.brotli != nil && accepts(accepted, "br"):
		h.Set("Content-Encoding", "br")
		body, etag = a.brotli, etag+"-br"
	case a.gzip != nil && accepts(accepted, "gzip"):
		h.Set("Content-Encoding", "gzip")
		body, etag = a.gzip, etag+"-gz"
	}
	h.Set("ETag", `"`+etag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// accepts reports whether an Accept-Encoding header names the encoding without forbidding it.
func accepts(header, encoding string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(part, ";")
		if !strings.EqualFold(strings.TrimSpace(name), encoding) {
			continue
		}
		quality, given := strings.CutPrefix(strings.TrimSpace(params), "q=")
		if !given {
			return true
		}
		q, err := strconv.ParseFloat(quality, 64)
		return err == nil && q > 0
	}
	return false
}
