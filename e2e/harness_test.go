package e2e_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const key = "an-admin-key-for-tests-only"

// root is the repository's folder.
var root = func() string {
	dir, err := filepath.Abs("..")
	if err != nil {
		panic(err)
	}
	return dir
}()

// need skips the test when something is missing on this machine; with CI=true that is a failure.
func need(t *testing.T, ok bool, missing string) {
	t.Helper()
	if ok {
		return
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("missing: %s", missing)
	}
	t.Skipf("missing: %s", missing)
}

// potato is the built program.
func potato(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(root, "bin", "potato")
	_, err := os.Stat(bin)
	need(t, err == nil, "bin/potato; `make build` makes it")
	return bin
}

// python is an interpreter that has scikit-learn.
func python(t *testing.T) string {
	t.Helper()
	p := filepath.Join(root, ".venv", "bin", "python")
	_, err := os.Stat(p)
	need(t, err == nil, ".venv with scikit-learn; `make unit` makes it")
	return p
}

// study copies the tutorial's study and puts the lines below model_training of its config.
func study(t *testing.T, training ...string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(root, "examples", "reviews"))); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config.yaml")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	added := "  enabled: true\n  python: " + python(t) + "\n"
	for _, line := range training {
		added += "  " + line + "\n"
	}
	changed := strings.Replace(string(text), "  enabled: true\n", added, 1)
	changed = strings.Replace(changed, `"change-me"`, `"`+key+`"`, 1)
	if err := os.WriteFile(config, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// server is a running `potato start`.
type server struct {
	t    *testing.T
	dir  string
	URL  string
	cmd  *exec.Cmd
	http *http.Client // what asks it; nil: the default one
	done chan struct{}
	mu   sync.Mutex
	log  bytes.Buffer
}

var urlPattern = regexp.MustCompile(`https?://[^\s/]+`)

// start serves the study until the test ends, on a free port unless args say otherwise.
func start(t *testing.T, dir string, args ...string) *server {
	t.Helper()
	for flag, usual := range map[string]string{"--port": "0", "--host": "127.0.0.1"} {
		if !slices.Contains(args, flag) {
			args = append(args, flag, usual)
		}
	}
	s := &server{t: t, dir: dir, done: make(chan struct{})}
	s.cmd = exec.Command(potato(t), append([]string{"start", filepath.Join(dir, "config.yaml")}, args...)...)
	s.cmd.Stderr = s
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if s.URL = urlPattern.FindString(line); s.URL == "" {
		_ = s.cmd.Wait()
		t.Fatalf("the server said %q (%v) and on standard error:\n%s", line, err, s.Log())
	}
	go func() {
		defer close(s.done)
		_, _ = io.Copy(io.Discard, out)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		s.stop(syscall.SIGTERM)
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.Log())
		}
	})
	return s
}

func (s *server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

// Log is what the server wrote to standard error so far.
func (s *server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// stop ends the server with a signal and waits until it is gone.
func (s *server) stop(sig syscall.Signal) {
	s.t.Helper()
	_ = s.cmd.Process.Signal(sig)
	select {
	case <-s.done:
	case <-time.After(20 * time.Second):
		_ = s.cmd.Process.Kill()
		<-s.done
		s.t.Errorf("the server did not end within 20 s of %v; its log:\n%s", sig, s.Log())
	}
}

// api calls an admin route and decodes the answer into out, when it is not nil. It returns the status.
func (s *server) api(method, path string, in, out any) int {
	s.t.Helper()
	status, body := s.raw(method, "/admin/training/api"+path, in)
	if out != nil {
		if err := json.Unmarshal(body, out); err != nil {
			s.t.Fatalf("%s %s answered %d with %q: %v", method, path, status, body, err)
		}
	}
	return status
}

func (s *server) raw(method, path string, in any) (int, []byte) {
	s.t.Helper()
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			s.t.Fatal(err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequest(method, s.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Content-Type", "application/json")
	res, err := cmp.Or(s.http, http.DefaultClient).Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return res.StatusCode, b
}

// run is what the tests look at of a run.
type run struct {
	RunID           string                         `json:"run_id"`
	Status          string                         `json:"status"`
	Step            string                         `json:"step"`
	Error           string                         `json:"error"`
	ErrorCode       string                         `json:"error_code"`
	Hint            string                         `json:"hint"`
	Warnings        []string                       `json:"warnings"`
	Metrics         map[string]*float64            `json:"metrics"`
	NTrain          int                            `json:"n_train"`
	NVal            int                            `json:"n_val"`
	NTest           int                            `json:"n_test"`
	NUnlabeled      int                            `json:"n_unlabeled"`
	StartedAt       *float64                       `json:"started_at"`
	FinishedAt      *float64                       `json:"finished_at"`
	MetricsBySchema map[string]map[string]*float64 `json:"metrics_by_schema"`
	Writeback       *struct {
		NRead    int `json:"n_read"`
		NWritten int `json:"n_written"`
	} `json:"writeback"`
	ArtifactURI string `json:"artifact_uri"`
	Host        string `json:"host"`
	Queue       *struct {
		Position   int    `json:"position"`
		WaitingFor string `json:"waiting_for"`
	} `json:"queue"`
}

func (r run) final() bool {
	return r.Status == "success" || r.Status == "error" || r.Status == "cancelled"
}

// post starts a run and returns its id.
func (s *server) post(request map[string]any) string {
	s.t.Helper()
	var answer struct {
		RunID  string `json:"run_id"`
		Detail string `json:"detail"`
	}
	if status := s.api("POST", "/runs", request, &answer); status != http.StatusAccepted {
		s.t.Fatalf("POST runs answered %d: %s", status, answer.Detail)
	}
	return answer.RunID
}

func (s *server) run(id string) run {
	s.t.Helper()
	var r run
	if status := s.api("GET", "/runs/"+id, nil, &r); status != http.StatusOK {
		s.t.Fatalf("GET runs/%s answered %d", id, status)
	}
	return r
}

// wait polls a run until it is as wanted, and reports the last state it saw when that takes too long.
func (s *server) wait(id, what string, until func(run) bool) run {
	s.t.Helper()
	var last run
	deadline := time.Now().Add(90 * time.Second)
	for time.Now().Before(deadline) {
		if last = s.run(id); until(last) {
			return last
		}
		if last.final() {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	s.t.Fatalf("run %s was never %s; at last it was %s", id, what, describe(last))
	return last
}

// finished waits for the end of a run that is to end in the status.
func (s *server) finished(id, status string) run {
	s.t.Helper()
	return s.wait(id, status, func(r run) bool { return r.Status == status })
}

func describe(r run) string {
	return fmt.Sprintf("%s (step %q, error %s %q)", r.Status, r.Step, r.ErrorCode, r.Error)
}
