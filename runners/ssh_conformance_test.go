package runners_test

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/project"
	"potato/runners"
	"potato/runners/hosts"
	"potato/runners/hosts/hoststest"
	"potato/runners/runnertest"
)

// The ssh runner keeps the contract over both transports, with every login shell, and where no socket can be forwarded.
func TestSSHKeepsTheContract(t *testing.T) {
	hoststest.Get(t)
	for name, host := range map[string]string{"native": "target", "openssh": "target-tcsh", "native without forwarding": "forbidden"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			transport, _, _ := strings.Cut(name, " ")
			remote := "potato-" + filepath.Base(bin(t, nil))
			t.Cleanup(func() {
				left, _ := filepath.Glob("/home/potato*/" + remote)
				for _, dir := range left {
					_ = os.RemoveAll(dir)
				}
			})
			runnertest.Suite{
				Training:  "  backends:\n    box: {type: ssh, host: " + host + ", transport: " + transport + ", python: /usr/bin/python3, gpus: none, remote_dir: " + remote + "}\n",
				Backend:   "box",
				Open:      openSSH,
				Processes: workersOf,
			}.Run(t)
		})
	}
}

// So does it where a scheduler finds the machine: the agent works on the login node, the worker on a node of the cluster.
func TestSlurmKeepsTheContract(t *testing.T) {
	t.Parallel()
	text, _ := loginNode(t, "target")
	// F2: what the scheduler takes over the grace is its KillWait, 2 s here, and up to 5 s more.
	runnertest.Suite{Training: text, Backend: "cluster", Open: openSSH, Processes: workersOf, Slack: 8 * time.Second}.Run(t)
}

// openSSH is the runner of hosts and login nodes, as a server makes it anew.
func openSSH(t *testing.T, c *project.Config) runners.Runner {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	r := runners.NewSSH(runners.SSHOptions{
		Config: c, Hosts: hosts.Options{ConfigFile: hoststest.Get(t).Config}, Agent: self, Home: func(j runners.Job) (runners.Home, error) {
			return runners.Home{Handler: deskRoutes(t, j), Token: "the-token-of-" + string(j.RunID), Release: func() {}}, nil
		},
	})
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

// workersOf lists what is left of the work of a handle on the host, which is this machine.
func workersOf(h api.Handle) []string {
	if h.Dir == "" {
		return nil
	}
	var on api.Handle
	text, err := os.ReadFile(filepath.Join(h.Dir, "handle.json"))
	if err != nil || json.Unmarshal(text, &on) != nil || on.Marker == "" {
		return nil
	}
	return agenttest.Marked(on.Marker)
}

// deskRoutes serves a desk as a server does.
func deskRoutes(t *testing.T, j runners.Job) http.Handler {
	answer := func(w http.ResponseWriter, v any, err error) {
		w.Header().Set("Content-Type", "application/json")
		if err != nil {
			e := api.AsError(err)
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			v = map[string]any{"status": http.StatusConflict, "title": "Conflict", "detail": e.Message, "code": e.Code}
		}
		_ = json.NewEncoder(w).Encode(v)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/training/jobs/claim", func(w http.ResponseWriter, _ *http.Request) { answer(w, j.Job, nil) })
	mux.HandleFunc("POST /api/training/jobs/{id}/progress", func(w http.ResponseWriter, r *http.Request) {
		var report api.ProgressReport
		err := json.NewDecoder(r.Body).Decode(&report)
		a, deskErr := j.Desk.Progress(r.Context(), j.Job, report.Events)
		answer(w, a, errors.Join(err, deskErr))
	})
	mux.HandleFunc("POST /api/training/jobs/{id}/heartbeat", func(w http.ResponseWriter, r *http.Request) {
		a, err := j.Desk.Heartbeat(r.Context(), j.Job)
		answer(w, a, err)
	})
	mux.HandleFunc("POST /api/training/jobs/{id}/finish", func(w http.ResponseWriter, r *http.Request) {
		var f api.Finish
		err := json.NewDecoder(r.Body).Decode(&f)
		answer(w, struct{}{}, errors.Join(err, j.Desk.Finish(r.Context(), j.Job, f)))
	})
	mux.HandleFunc("GET /api/training/jobs/{id}/bundle", func(w http.ResponseWriter, r *http.Request) {
		file := filepath.Join(t.TempDir(), "bundle.tar.gz")
		f, err := os.Create(file)
		if err == nil {
			err = errors.Join(project.PackBundle(r.Context(), filepath.Join(j.Dir, "bundle"), f), f.Close())
		}
		if err != nil {
			answer(w, nil, err)
			return
		}
		packed, err := os.ReadFile(file)
		if err != nil {
			answer(w, nil, err)
			return
		}
		sum := sha256.Sum256(packed)
		w.Header().Set("Repr-Digest", api.ReprDigest(hex.EncodeToString(sum[:])))
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(packed))
	})
	mux.HandleFunc("PUT /api/training/jobs/{id}/predictions", func(w http.ResponseWriter, r *http.Request) {
		body := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			unpacked, err := gzip.NewReader(r.Body)
			if err != nil {
				answer(w, nil, err)
				return
			}
			body = unpacked
		}
		file := filepath.Join(t.TempDir(), "predictions.jsonl")
		text, err := io.ReadAll(body)
		err = errors.Join(err, os.WriteFile(file, text, 0o600))
		answer(w, api.UploadOffset{Offset: int64(len(text)), Done: true}, errors.Join(err, j.Desk.Predictions(r.Context(), j.Job, file)))
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer the-token-of-"+string(j.RunID) {
			t.Errorf("%s came with %q", r.URL.Path, r.Header.Get("Authorization"))
		}
		mux.ServeHTTP(w, r)
	})
}
