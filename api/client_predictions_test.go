package api_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
)

// predictions is a claimed job with a predictions file of about three megabytes.
type predictions struct {
	*bundles
	path    string
	content string
}

func newPredictions(t *testing.T) *predictions {
	t.Helper()
	p := &predictions{bundles: newBundles(t), path: filepath.Join(t.TempDir(), "predictions.jsonl"), content: agenttest.Noise(3<<20, 7)}
	p.write(p.content)
	return p
}

func (p *predictions) write(content string) {
	p.Helper()
	if err := os.WriteFile(p.path, []byte(content), 0o600); err != nil {
		p.Fatal(err)
	}
}

func (p *predictions) upload() error { return p.client.Predictions(p.Context(), p.job, p.path) }

// stored wants the file on the server, byte for byte, and nothing else beside it here.
func (p *predictions) stored() {
	p.Helper()
	if err := p.upload(); err != nil {
		p.Fatalf("Predictions: %v", err)
	}
	if got := string(p.server.Run(p.job.RunID).Predictions); got != p.content {
		p.Errorf("the server has %d bytes, want %d", len(got), len(p.content))
	}
	only(p.T, filepath.Dir(p.path), "predictions.jsonl")
}

func (p *predictions) sends(methods string) {
	p.Helper()
	var got []string
	for _, u := range p.server.Run(p.job.RunID).Uploads {
		method, _, _ := strings.Cut(u, " ")
		got = append(got, method)
	}
	if s := strings.Join(got, " "); s != methods {
		p.Errorf("sent %s, want %s", s, methods)
	}
}

// limit refuses larger bodies, as nginx does: at once, with a page of its own.
func limit(most int64, next func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.ContentLength > most {
			w.Header().Set("Connection", "close")
			http.Error(w, "<html>413 Request Entity Too Large</html>", http.StatusRequestEntityTooLarge)
			return true
		}
		return next != nil && next(w, r)
	}
}

func TestPredictionsGoUpWhole(t *testing.T) {
	t.Parallel()
	p := newPredictions(t)
	var last string
	p.client.OnTransfer = func(_ api.RunID, what string, done, total int64) { last = fmt.Sprint(what, done == total) }
	p.stored()
	p.sends("PUT")
	if last != "predictionstrue" {
		t.Errorf("told of the transfer: %q", last)
	}
	p.stored() // the same again is taken again

	p.content = strings.Repeat(`{"instance_id":"1"}`+"\n", 10_000)
	p.write(p.content)
	uploads := len(p.server.Run(p.job.RunID).Uploads)
	p.stored()
	if sent := p.server.Run(p.job.RunID).Uploads[uploads]; len(sent) > len("PUT 9999") {
		t.Errorf("sent %s bytes for %d: not packed", sent, len(p.content))
	}
	p.content = ""
	p.write("")
	p.stored()
}

// T42: a proxy's limit is gone round with smaller requests.
func TestPredictionsPastAProxysLimit(t *testing.T) {
	t.Parallel()
	p := newPredictions(t)
	p.server.Before = limit(1<<20, nil) // nginx's default
	p.stored()
	p.sends("PATCH PATCH PATCH PATCH") // those that arrived

	small := newPredictions(t)
	small.server.Before = limit(64<<10, nil)
	small.stored()
}

// T42: below the smallest request there is only whoever runs the proxy.
func TestPredictionsRefusedByAProxy(t *testing.T) {
	t.Parallel()
	p := newPredictions(t)
	p.server.Before = limit(64<<10-1, nil)
	err := p.upload()
	e := api.AsError(err)
	if e.Code != "predictions_too_large" || e.Kind != api.KindTooLarge || !strings.Contains(e.Hint, "`client_max_body_size`") || !strings.Contains(e.Message, "64 KiB") {
		t.Errorf("Predictions: %v; %s", err, e.Hint)
	}
	if strings.Contains(e.Hint, "max_predictions_mb") || p.server.Run(p.job.RunID).Predictions != nil {
		t.Errorf("hint: %s", e.Hint)
	}
}

// The server's own limit is its last word (G3).
func TestPredictionsRefusedByTheServer(t *testing.T) {
	t.Parallel()
	p := newPredictions(t)
	p.server.MaxPredictions = 1 << 20
	err := p.upload()
	if !api.HasCode(err, "predictions_too_large") || !strings.Contains(err.Error(), "max_predictions_mb") {
		t.Errorf("Predictions: %v", err)
	}
	p.sends("PUT")
}

// A proxy that cuts what it does not like, without an answer, is gone round as well.
func TestPredictionsCutByAProxy(t *testing.T) {
	t.Parallel()
	p := newPredictions(t)
	p.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if r.ContentLength > 300_000 {
			_, _ = io.CopyN(io.Discard, r.Body, 200_000)
			panic(http.ErrAbortHandler)
		}
		return false
	}
	p.stored()
}

// An upload in chunks that was interrupted goes on where the server stands.
func TestPredictionsGoOn(t *testing.T) {
	t.Parallel()
	p := newPredictions(t)
	var chunks atomic.Int32
	p.server.Before = limit(1<<20, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && chunks.Add(1) >= 4 {
			http.Error(w, "away", http.StatusBadGateway)
			return true
		}
		return false
	})
	err := p.upload()
	if e := api.AsError(err); e.Kind != api.KindUnavailable {
		t.Fatalf("Predictions: %v", err)
	}
	had := len(p.server.Run(p.job.RunID).Uploads)
	var offset string
	p.server.Before = limit(1<<20, func(_ http.ResponseWriter, r *http.Request) bool {
		if o := r.Header.Get("Upload-Offset"); offset == "" && o != "" {
			offset = o
		}
		return false
	})
	p.stored()
	if had != 3 || offset == "" || offset == "0" {
		t.Errorf("%d chunks before, then from %q on", had, offset)
	}
}

// The answer to a chunk is lost: the server is asked where it stands, and no byte goes twice into the file.
func TestPredictionsLoseAnAnswer(t *testing.T) {
	t.Parallel()
	p := newPredictions(t)
	p.server.Before = limit(1<<20, nil)
	var chunks atomic.Int32
	p.server.After = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && chunks.Add(1)%2 == 1 {
			panic(http.ErrAbortHandler)
		}
		return false
	}
	p.stored()
}

// What the server has of an earlier attempt's file is replaced.
func TestPredictionsOfAnotherAttempt(t *testing.T) {
	t.Parallel()
	p := newPredictions(t)
	p.server.Before = limit(1<<20, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch && r.Header.Get("Upload-Offset") != "0" { // the server has a part of it
			http.Error(w, "away", http.StatusBadGateway)
			return true
		}
		return false
	})
	if err := p.upload(); err == nil {
		t.Fatal("the upload was not interrupted")
	}
	p.server.Before = nil
	p.content = agenttest.Noise(2<<20, 8)
	p.write(p.content)
	p.stored()
}

func TestPredictionsWithoutAFile(t *testing.T) {
	t.Parallel()
	p := newPredictions(t)
	if err := os.Remove(p.path); err != nil {
		t.Fatal(err)
	}
	if e := api.AsError(p.upload()); e.Kind == api.KindInternal || e.Kind == api.KindUnavailable {
		t.Errorf("Predictions: %v would be tried again", e)
	}
}

// An upload may take as long as it moves, and the server as long as it needs to store it.
func TestPredictionsTakeTheirTime(t *testing.T) {
	t.Parallel()
	p := newPredictions(t)
	p.client.StallTimeout, p.client.CallTimeout = 500*time.Millisecond, 500*time.Millisecond
	p.server.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			r.Body = &slow{r.Body, time.NewTicker(20 * time.Millisecond)}
		}
		return false
	}
	p.stored()
	p.sends("PUT")

	p = newPredictions(t)
	p.client.StoreTimeout = 50 * time.Millisecond
	p.server.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
		return false
	}
	if e := api.AsError(p.upload()); e.Kind != api.KindUnavailable {
		t.Errorf("Predictions: %v", e)
	}
	p.sends("")
}

// slow is a body that is read in about forty pieces, one a tick.
type slow struct {
	io.ReadCloser
	tick *time.Ticker
}

func (s *slow) Read(b []byte) (int, error) {
	<-s.tick.C
	return s.ReadCloser.Read(b[:min(len(b), 80_000)])
}
