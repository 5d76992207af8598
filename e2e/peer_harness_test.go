package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"potato/api"
)

// peer is a program of the published tool's virtual environment.
func peer(t *testing.T, program string) string {
	t.Helper()
	path := filepath.Join(root, ".venv-peer", "bin", program)
	_, err := os.Stat(path)
	need(t, err == nil, ".venv-peer with the published annotation tool; `make "+filepath.Join(root, ".cache", "stamps", "peer")+"` makes it")
	return path
}

// startPeer serves the study with the published tool until the test ends. Its admin routes are where ours are.
func startPeer(t *testing.T, dir string) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_, port, _ := net.SplitHostPort(address)
	_ = listener.Close()
	s := &server{t: t, dir: dir, URL: "http://" + address, done: make(chan struct{})}
	s.cmd = exec.Command(peer(t, "potato"), "start", filepath.Join(dir, "config.yaml"), "-p", port, "--host", "127.0.0.1")
	s.cmd.Dir = dir
	s.cmd.Stdout, s.cmd.Stderr = s, s
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() { s.stop(syscall.SIGTERM) })
	deadline := time.Now().Add(60 * time.Second)
	for {
		res, err := http.Get(s.URL + "/")
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return s
			}
		}
		select {
		case <-s.done:
			t.Fatalf("the published tool ended:\n%s", s.Log())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatalf("the published tool does not answer (%v):\n%s", err, s.Log())
		}
	}
}

// trained trains on the study's sentiment and returns the run's folder. It serves for both servers.
func trained(t *testing.T, s *server) string {
	t.Helper()
	var r run
	if status := s.api("POST", "/runs", map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}}, &r); status >= 300 {
		t.Fatalf("POST runs answered %d", status)
	}
	s.finished(r.RunID, "success")
	return filepath.Join(s.dir, "annotation_output", "training", "runs", r.RunID)
}

// readBundle reads a bundle's manifest and its rows by split.
func readBundle(t *testing.T, dir string) (api.Manifest, map[string][]api.Row) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var m api.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	rows := map[string][]api.Row{}
	for name, split := range m.Splits {
		rows[name] = lines[api.Row](t, filepath.Join(dir, split.Path))
		if len(rows[name]) != split.N {
			t.Errorf("%s has %d rows in %s, its manifest says %d", dir, len(rows[name]), name, split.N)
		}
	}
	return m, rows
}

// lines reads a file of JSON lines.
func lines[T any](t *testing.T, path string) []T {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []T
	in := bufio.NewScanner(bytes.NewReader(text))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var one T
		if err := json.Unmarshal(in.Bytes(), &one); err != nil {
			t.Fatalf("%s, line %d: %v", path, len(all)+1, err)
		}
		all = append(all, one)
	}
	if err := in.Err(); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return all
}
