package handlers

import (
	"compress/gzip"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// compress packs JSON answers for clients that take gzip. Streams, downloads and exports go as they are: a stream must
// not wait in a buffer, and a range is one of the file's own bytes.
func compress(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, AgentPrefix+"/") {
			next.ServeHTTP(w, r) // small answers, and files that are packed already
			return
		}
		w.Header().Add("Vary", "Accept-Encoding")
		if !takesGzip(r.Header.Get("Accept-Encoding")) {
			next.ServeHTTP(w, r)
			return
		}
		c := &compressor{ResponseWriter: w}
		defer c.close()
		next.ServeHTTP(c, r)
	})
}

// takesGzip reads the client's preference; gzip;q=0 is a refusal.
func takesGzip(accept string) bool {
	for part := range strings.SplitSeq(accept, ",") {
		coding, q, weighted := strings.Cut(part, ";")
		if c := strings.ToLower(strings.TrimSpace(coding)); c != "gzip" && c != "*" {
			continue
		}
		if !weighted {
			return true
		}
		_, q, _ = strings.Cut(q, "=")
		weight, err := strconv.ParseFloat(strings.TrimSpace(q), 64)
		return err == nil && weight > 0
	}
	return false
}

// worthPacking is the size from which packing an answer saves more than it costs.
const worthPacking = 1024

var gzipWriters = sync.Pool{New: func() any {
	w, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is a valid one
	return w
}}

// compressor holds the header back until the first bytes show whether the answer is worth packing.
type compressor struct {
	http.ResponseWriter
	gz     *gzip.Writer
	status int
	sent   bool
}

// WriteHeader notes the status; the first Write sends it.
func (c *compressor) WriteHeader(status int) {
	if c.sent || status < http.StatusOK {
		c.ResponseWriter.WriteHeader(status)
		return
	}
	c.status = status
	if !strings.Contains(c.Header().Get("Content-Type"), "json") {
		c.sendHeader()
	}
}

// Write decides with the first bytes, and sends them.
func (c *compressor) Write(b []byte) (int, error) {
	if !c.sent {
		if c.packs(b) {
			c.Header().Set("Content-Encoding", "gzip")
			c.Header().Del("Content-Length")
			c.gz = gzipWriters.Get().(*gzip.Writer)
			c.gz.Reset(c.ResponseWriter)
		}
		c.sendHeader()
	}
	if c.gz != nil {
		return c.gz.Write(b)
	}
	return c.ResponseWriter.Write(b)
}

func (c *compressor) packs(first []byte) bool {
	kind, _, _ := strings.Cut(c.Header().Get("Content-Type"), ";")
	json := kind == "application/json" || kind == "application/problem+json" || strings.HasPrefix(kind, "application/openapi")
	return json && len(first) >= worthPacking && c.Header().Get("Content-Encoding") == ""
}

func (c *compressor) sendHeader() {
	c.sent = true
	if c.status != 0 {
		c.ResponseWriter.WriteHeader(c.status)
	}
}

// Flush sends what is buffered.
func (c *compressor) Flush() {
	if !c.sent {
		c.sendHeader()
	}
	if c.gz != nil {
		_ = c.gz.Flush() // the next Write reports what went wrong
	}
	_ = http.NewResponseController(c.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController find the connection.
func (c *compressor) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func (c *compressor) close() {
	if !c.sent {
		c.sendHeader()
	}
	if c.gz != nil {
		_ = c.gz.Close() // the client went away
		gzipWriters.Put(c.gz)
	}
}
