package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
)

const token = "secret-token-0123456789"

// bundles is a server with one claimed job, whose bundle has about two megabytes.
type bundles struct {
	*testing.T
	server  *agenttest.Server
	client  *api.Client
	job     api.Job
	dir     string
	archive []byte

	mu   sync.Mutex
	gets []http.Header   // of the requests for the bundle
	keep func(n int) int // how much of the n-th answer gets through; nil: all
}

func newBundles(t *testing.T) *bundles {
	t.Helper()
	b := &bundles{T: t, server: agenttest.NewServer(token), dir: t.TempDir()}
	b.archive = agenttest.Archive(t, "manifest.json", "{}", "train.jsonl", agenttest.Noise(2<<20, 1), "media/a.png", "png")
	job := agenttest.Job()
	b.server.Add(job, b.archive)
	listening := httptest.NewServer(agenttest.Cut(b.server, b.cut))
	t.Cleanup(listening.Close)
	b.client = &api.Client{BaseURL: listening.URL, Token: token, HTTP: listening.Client(), RetryAfter: time.Millisecond}
	claimed, err := b.client.Claim(t.Context(), api.ClaimRequest{AgentID: "a", ClaimID: "c"})
	if err != nil || claimed == nil {
		t.Fatalf("claim: %v, %v", claimed, err)
	}
	b.job = *claimed
	return b
}

func isBundle(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/bundle") }

// cut takes note of the request and says how much of its answer gets through.
func (b *bundles) cut(r *http.Request) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !isBundle(r) {
		return -1
	}
	b.gets = append(b.gets, r.Header.Clone())
	if b.keep == nil {
		return -1
	}
	return b.keep(len(b.gets))
}

// cuts lets 400,000 bytes of each of the first n answers through.
func (b *bundles) cuts(n int) {
	b.keep = func(i int) int {
		if i <= n {
			return 400_000
		}
		return -1
	}
}

// instead puts something in place of the n-th answer.
func (b *bundles) instead(n int, answer http.HandlerFunc) {
	b.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		b.mu.Lock()
		is := isBundle(r) && len(b.gets) == n
		b.mu.Unlock()
		if is {
			answer(w, r)
		}
		return is
	}
}

func (b *bundles) fetch() (string, error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	return b.client.Bundle(ctx, b.job, b.dir)
}

// arrives wants the bundle whole.
func (b *bundles) arrives() {
	b.Helper()
	folder, err := b.fetch()
	if err != nil {
		b.Fatalf("Bundle: %v", err)
	}
	for name, want := range map[string]string{"manifest.json": "{}", "train.jsonl": agenttest.Noise(2<<20, 1), "media/a.png": "png"} {
		got, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil || string(got) != want {
			b.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
		}
	}
	b.nothingElse("bundle")
}

// nothingElse wants no other names in the job directory.
func (b *bundles) nothingElse(names ...string) {
	b.Helper()
	left, err := os.ReadDir(b.dir)
	if err != nil {
		b.Fatal(err)
	}
	var got []string
	for _, e := range left {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		b.Errorf("the job directory has %v, want %v", got, names)
	}
}

func (b *bundles) ranges() (ranges []string) {
	for _, h := range b.gets {
		ranges = append(ranges, h.Get("Range"))
	}
	return ranges
}

func TestBundleArrives(t *testing.T) {
	t.Parallel()
	b := newBundles(t)
	var steps []string
	b.client.OnTransfer = func(run api.RunID, what string, done, total int64) {
		steps = append(steps, fmt.Sprint(run, what, done == total))
	}
	b.arrives()
	if len(steps) == 0 || steps[len(steps)-1] != fmt.Sprint(b.job.RunID, "bundle", true) {
		t.Errorf("told of the transfer: %v", steps)
	}
	h := b.gets[0]
	if h.Get("Authorization") != "Bearer "+token || h.Get("Potato-Lease") != b.job.Lease || h.Get("Accept-Encoding") != "identity" {
		t.Errorf("asked with %v", h)
	}
	// Asked again, as after a restart, it is there.
	if _, err := b.fetch(); err != nil || len(b.gets) != 1 {
		t.Errorf("again: %v after %d requests", err, len(b.gets))
	}
}

// G3: a broken download goes on where it stopped.
func TestBundleIsCutThreeTimes(t *testing.T) {
	t.Parallel()
	b := newBundles(t)
	b.cuts(3)
	b.arrives()
	if got, want := fmt.Sprint(b.ranges()), "[ bytes=400000- bytes=800000- bytes=1200000-]"; got != want {
		t.Errorf("ranges %s, want %s", got, want)
	}
	if got := b.gets[3].Get("If-Range"); len(got) != 66 {
		t.Errorf("If-Range: %q", got)
	}
}

// G3: up to five attempts in all, and a reason then.
func TestBundleIsCutFiveTimes(t *testing.T) {
	t.Parallel()
	b := newBundles(t)
	b.cuts(5)
	_, err := b.fetch()
	if !api.HasCode(err, "bundle_download_failed") {
		t.Fatalf("Bundle: %v", err)
	}
	if got, want := err.Error(), "The bundle could not be downloaded in 5 attempts: the connection was cut after 1.9 MB of 2.0 MB"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	if len(b.gets) != 5 {
		t.Errorf("%d requests, want 5", len(b.gets))
	}
}

// The attempts of an agent that was killed in between count on; what it had is not fetched again.
func TestBundleAfterARestart(t *testing.T) {
	t.Parallel()
	b := newBundles(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.keep = func(n int) int {
		if n == 3 {
			cancel()
		}
		if n <= 3 {
			return 300_000
		}
		return -1
	}
	if _, err := b.client.Bundle(ctx, b.job, b.dir); !errors.Is(err, context.Canceled) {
		t.Fatalf("left with %v", err)
	}
	b.arrives()
	if got := b.gets[len(b.gets)-1].Get("Range"); got < "bytes=600000-" {
		t.Errorf("went on at %q", got)
	}
}

// T43: a bundle that was built anew between two ranges comes whole, and replaces what had come.
func TestBundleIsBuiltAnew(t *testing.T) {
	t.Parallel()
	b := newBundles(t)
	old := agenttest.Archive(t, "manifest.json", "old", "train.jsonl", agenttest.Noise(2<<20, 2))
	b.server.SetArchive(b.job.RunID, old)
	b.keep = func(n int) int {
		if n == 1 {
			return 500_000
		}
		if n == 2 {
			b.server.SetArchive(b.job.RunID, b.archive)
		}
		return -1
	}
	b.arrives()
	if got, want := fmt.Sprint(b.ranges()), "[ bytes=500000-]"; got != want {
		t.Errorf("ranges %s, want %s", got, want)
	}
}

// T43: answers that are not the part that was asked for are thrown away, and the download begins anew.
func TestBundleWrongAnswers(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(b *bundles) http.HandlerFunc{
		"wrong Content-Range": func(b *bundles) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 100-%d/%d", len(b.archive)-1, len(b.archive)))
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(b.archive[100:])
			}
		},
		"206 without Content-Range": func(b *bundles) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(b.archive[400_000:])
			}
		},
		"206 of another bundle": func(b *bundles) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("ETag", `"other"`)
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 400000-%d/%d", len(b.archive)-1, len(b.archive)))
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(make([]byte, len(b.archive)-400_000))
			}
		},
		"the right place and the wrong bytes": func(b *bundles) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Range", fmt.Sprintf("bytes 400000-%d/%d", len(b.archive)-1, len(b.archive)))
				w.WriteHeader(http.StatusPartialContent)
				_, _ = w.Write(make([]byte, len(b.archive)-400_000))
			}
		},
		"416": func(*bundles) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Range", "bytes */300000")
				w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			}
		},
		"a proxy's page instead of the bundle": func(*bundles) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = w.Write([]byte("<html>Please log in</html>"))
			}
		},
		"a packed answer that lies": func(b *bundles) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Repr-Digest", digestOf(b.archive))
				_, _ = w.Write(packed(b.T, []byte("something else")).Bytes())
			}
		},
		"bytes that are not packed as they say": func(b *bundles) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "br")
				w.Header().Set("Repr-Digest", digestOf(b.archive))
				_, _ = w.Write(b.archive)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBundles(t)
			b.cuts(1)
			b.instead(2, answer(b))
			b.arrives()
			if got := fmt.Sprint(b.ranges()); !strings.HasPrefix(got, "[ bytes=400000- ") || b.gets[2].Get("Range") != "" {
				t.Errorf("ranges %s, want the third request for the whole", got)
			}
		})
	}
	t.Run("a packed answer", func(t *testing.T) {
		t.Parallel()
		b := newBundles(t)
		b.instead(1, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Repr-Digest", digestOf(b.archive))
			_, _ = w.Write(packed(t, b.archive).Bytes())
		})
		b.arrives()
	})
	t.Run("a 200 in place of the rest", func(t *testing.T) {
		t.Parallel()
		b := newBundles(t)
		b.cuts(1)
		b.instead(2, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", `W/"weak"`)
			w.Header().Set("Repr-Digest", "md5=:AAAA:, "+digestOf(b.archive))
			_, _ = w.Write(b.archive)
		})
		b.arrives()
	})
}

// A server that is away, or builds the bundle still, costs no attempt.
func TestBundleIsNotReady(t *testing.T) {
	t.Parallel()
	b := newBundles(t)
	b.server.SetArchive(b.job.RunID, nil)
	b.keep = func(n int) int {
		if n == 2 {
			b.server.SetArchive(b.job.RunID, b.archive)
		}
		return -1
	}
	began := time.Now()
	b.arrives()
	if waited := time.Since(began); waited < time.Second || len(b.gets) < 2 {
		t.Errorf("came after %v and %d requests; Retry-After was 1 s", waited, len(b.gets))
	}

	away := newBundles(t)
	away.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		away.mu.Lock()
		defer away.mu.Unlock()
		if isBundle(r) && len(away.gets) <= 8 {
			http.Error(w, "bad gateway", http.StatusBadGateway)
			return true
		}
		return false
	}
	away.client.RetryAfter = 100 * time.Microsecond
	away.arrives()
}

// A connection over which nothing comes any more is a broken one.
func TestBundleStalls(t *testing.T) {
	t.Parallel()
	b := newBundles(t)
	b.client.StallTimeout = 500 * time.Millisecond
	b.instead(1, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Repr-Digest", digestOf(b.archive))
		w.Header().Set("ETag", digestETag(b.archive))
		w.Header().Set("Content-Length", fmt.Sprint(len(b.archive)))
		_, _ = w.Write(b.archive[:1000])
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	b.arrives()
	if got, want := fmt.Sprint(b.ranges()), "[ bytes=1000-]"; got != want {
		t.Errorf("ranges %s, want %s", got, want)
	}
}

// What the server says about the run ends the download at once.
func TestBundleRefused(t *testing.T) {
	t.Parallel()
	b := newBundles(t)
	b.server.GiveUp(b.job.RunID)
	if _, err := b.fetch(); !api.HasCode(err, "run_over") || len(b.gets) != 1 {
		t.Errorf("Bundle: %v after %d requests", err, len(b.gets))
	}
	bad := newBundles(t)
	bad.server.SetArchive(bad.job.RunID, []byte("no archive"))
	if _, err := bad.fetch(); !api.HasCode(err, "bad_bundle") {
		t.Errorf("Bundle: %v", err)
	}
	bad.nothingElse("bundle.tar.gz")
}
