package e2e_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// slowLink is a proxy to the address that carries so many bytes a second of each connection's way there, and everything at
// once on the way back.
func slowLink(t *testing.T, to string, perSecond int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(to, "http://"))
			if err != nil {
				_ = near.Close()
				continue
			}
			all.Go(func() {
				defer near.Close()
				_, _ = io.Copy(near, far)
			})
			all.Go(func() {
				defer far.Close()
				const part = 100 * time.Millisecond
				for {
					began := time.Now()
					n, err := io.CopyN(far, near, max(perSecond*int64(part)/int64(time.Second), 1))
					if err != nil {
						return
					}
					if n > 0 {
						time.Sleep(part - time.Since(began))
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return "http://" + l.Addr().String()
}

// nginxLog is the access log of an nginx.
type nginxLog struct {
	t    *testing.T
	path string
}

// count is how many requests for the route were answered with the status.
func (n nginxLog) count(route string, status int) int {
	n.t.Helper()
	b, err := os.ReadFile(n.path)
	if err != nil {
		n.t.Fatal(err)
	}
	return len(regexp.MustCompile(fmt.Sprintf(`(?m)"(?:GET|POST|PUT|PATCH) /api/training/jobs/(?:[^ ]*/)?%s HTTP/1.1" %d `, route, status)).FindAll(b, -1))
}

// until waits until there are so many.
func (n nginxLog) until(route string, status, many int) {
	n.t.Helper()
	for deadline := time.Now().Add(60 * time.Second); n.count(route, status) < many; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b, _ := os.ReadFile(n.path)
			n.t.Fatalf("nginx never answered %d of %s with %d; its log:\n%s", many, route, status, b)
		}
	}
}

// uploadTook is how long the predictions were on their way, as the agent's log has it.
func (s *server) uploadTook(id string) time.Duration {
	s.t.Helper()
	at := map[string]time.Time{}
	for _, line := range s.agentLog(id) {
		stamp, text, _ := strings.Cut(line, " ")
		if when, err := time.Parse(time.RFC3339, stamp); err == nil {
			at[text] = when
		}
	}
	return at["the server has the predictions"].Sub(at["handing over the predictions"])
}

// ends waits longer than finished does.
func (s *server) ends(id, status string, limit time.Duration) {
	s.t.Helper()
	for deadline := time.Now().Add(limit); ; time.Sleep(100 * time.Millisecond) {
		r := s.run(id)
		if r.Status == status {
			return
		}
		if r.final() || time.Now().After(deadline) {
			s.t.Fatalf("run %s is %s after %v, want it %s", id, describe(r), limit, status)
		}
	}
}

// patience is a run with a large bundle and many predictions whose agent stands behind an nginx and a slow link.
func patience(t *testing.T, settings string, perSecond int64) (*server, nginxLog, *agentProgram) {
	t.Helper()
	dir := agentStudy(t)
	moreItems(t, dir, 12_000, 3000)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	log := nginxLog{t, filepath.Join(t.TempDir(), "access.log")}
	front := nginx(t, s, "access_log "+log.path+"; "+strings.ReplaceAll(settings, "SERVER", s.URL))
	return s, log, agentHere(t, slowLink(t, front, perSecond), token, t.TempDir())
}

// T42: an nginx that waits less long than the server keeps answers back cuts the question for work, the heartbeats and the
// wait for a bundle, over and over: the run is trained all the same, and costs no attempt of the download. An upload that
// takes longer than any of its time-outs arrives in one piece.
func TestAgentBehindAnImpatientNginx(t *testing.T) {
	t.Parallel()
	s, log, _ := patience(t, "proxy_read_timeout 1s; proxy_send_timeout 1s; client_body_timeout 1s; send_timeout 1s; "+
		"location ~ /bundle$ { proxy_read_timeout 400ms; proxy_pass SERVER; }", 15_000)
	log.until("claim", 504, 2)
	id := s.agentTextRun(0)
	s.ends(id, "success", 3*time.Minute)
	for _, route := range []string{"bundle", "heartbeat"} {
		if log.count(route, 504) == 0 {
			t.Errorf("nginx cut no %s", route)
		}
	}
	if took := s.uploadTook(id); took < 3*time.Second || log.count("predictions", 200) != 1 {
		t.Errorf("the upload took %v and %d requests", took, log.count("predictions", 200))
	}
	lines := s.agentLog(id)
	saidInOrder(t, lines, "warning: heartbeat failed: ", "the server has the predictions")
	if len(lines) > 60 {
		t.Errorf("the cuts filled the agent's log with %d lines:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}

// T42: an nginx as it comes, with time-outs of 60 s, cuts nothing: neither an agent that waits for longer, nor an upload.
// With `make test` the time-outs are shorter where the server's own waits are.
func TestAgentBehindAPatientNginx(t *testing.T) {
	t.Parallel()
	settings, idle, perSecond, upload := "proxy_read_timeout 32s; client_body_timeout 4s; proxy_send_timeout 4s; send_timeout 4s;", 1, int64(10_000), 6*time.Second
	if os.Getenv("POTATO_TEST_ALL") != "" {
		settings, idle, perSecond, upload = "", 3, 1000, 70*time.Second
	}
	s, log, a := patience(t, settings, perSecond)
	for range idle {
		log.until("claim", 204, log.count("claim", 204)+1)
	}
	id := s.agentTextRun(0)
	s.ends(id, "success", 5*time.Minute)
	if took := s.uploadTook(id); took < upload || log.count("predictions", 200) != 1 {
		t.Errorf("the upload took %v and %d requests, want at least %v and one", took, log.count("predictions", 200), upload)
	}
	for _, route := range []string{"claim", "bundle", "heartbeat", "progress", "predictions", "finish"} {
		for _, status := range []int{408, 502, 504} { // not 499, which is the agent's own doing when the run has ended
			if n := log.count(route, status); n > 0 {
				t.Errorf("%d times %s was answered %d", n, route, status)
			}
		}
	}
	if text := strings.Join(s.agentLog(id), "\n") + a.said(); strings.Contains(text, "heartbeat failed") || strings.Contains(text, "no answer") {
		t.Errorf("something was cut:\n%s", text)
	}
}
