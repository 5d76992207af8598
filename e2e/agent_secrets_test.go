package e2e_test

import (
	"bytes"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// T39: of a session with a success, a failure, a cancel, a wrong token and a replaced one, no token stands in a process, a
// file, a log or an answer, on either side.
func TestTokensAreNowhere(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t, "grace_seconds: 2")
	config := filepath.Join(dir, "config.yaml")
	replaced := register(t, config)
	token := register(t, config)
	s := start(t, dir)
	const wrong = "potato_SOMEBODYELSESTOKENSOMEBODYELSESTOKEN"
	workdirs := []string{t.TempDir(), t.TempDir(), t.TempDir()}
	for i, bad := range []string{wrong, replaced} {
		agentHere(t, s.URL, bad, workdirs[i]).leaves(1)
	}
	workdir := workdirs[2]
	a := agentHere(t, s.URL, token, workdir, "--keep")
	ids := []string{s.agentTextRun(0)}
	s.finished(ids[0], "success")

	ids = append(ids, s.agentTextRun(forLong))
	s.training(ids[1])
	if len(jobs(t, workdir)) < 2 {
		t.Errorf("no worker to look at: %v", jobs(t, workdir))
	}
	for _, secret := range []string{token, replaced, wrong} {
		if where := processesThatSay(t, secret); len(where) > 0 {
			t.Errorf("a token stands in %v", where)
		}
	}
	s.api("POST", "/runs/"+ids[1]+"/cancel", nil, nil)
	s.finished(ids[1], "cancelled")

	ids = append(ids, s.agentTextRun(forLong))
	s.training(ids[2])
	if last := register(t, config); last == token {
		t.Fatal("the token is the same")
	} else {
		a.leaves(1)
		agentHere(t, s.URL, last, workdir, "--keep", "--once")
	}
	s.finished(ids[2], "error")

	secrets := [][]byte{[]byte(token), []byte(replaced), []byte(wrong)}
	holds := func(where string, text []byte) {
		for i, secret := range secrets {
			if bytes.Contains(text, secret) {
				t.Errorf("token %d stands in %s", i, where)
			}
		}
	}
	holds("the server's log", []byte(s.Log()))
	files := 0
	for _, folder := range append(workdirs, dir) {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files++
			holds(path, text)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if files < 50 {
		t.Errorf("only %d files were looked at", files)
	}
	pages := []string{"/admin/training", "/openapi.yaml", "/healthz", "/metrics", "/admin/training/api/backends", "/admin/training/api/runs", "/admin/training/api/config"}
	for _, id := range ids {
		for _, page := range []string{"", "/events?limit=5000", "/metrics", "/artifacts", "/log?source=log", "/log?source=agent", "/log?source=stdout", "/log?source=stderr"} {
			pages = append(pages, "/admin/training/api/runs/"+id+page)
		}
	}
	answered := 0
	for _, page := range pages {
		status, body := s.raw("GET", page, nil)
		if status == http.StatusOK {
			answered++
		}
		holds(page, body)
	}
	if status, body := s.raw("POST", "/admin/training/api/backends/"+workstation+"/check", nil); status == http.StatusOK {
		answered++
		holds("the check", body)
	}
	if answered < len(pages)-2 {
		t.Errorf("only %d of %d pages answered", answered, len(pages)+1)
	}
}

// A token in the wrong place is refused without being repeated: in a URL it would be logged, so it opens nothing there.
func TestTokenInTheWrongPlace(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	for _, change := range []func(*http.Request){
		func(r *http.Request) { r.URL.RawQuery = "token=" + token },
		func(r *http.Request) { r.Header.Set("X-API-Key", token) },
		func(r *http.Request) { r.Header.Set("Authorization", "Basic "+token) },
		func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "session", Value: token}) },
		func(r *http.Request) { r.URL.Path += "/" + token },
	} {
		r, err := http.NewRequest(http.MethodPost, s.URL+"/api/training/jobs/claim", strings.NewReader(`{"agent_id":"a","claim_id":"b","host":"h","version":"v","wait_s":0}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		change(r)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, err = body.ReadFrom(res.Body)
		_ = res.Body.Close()
		if err != nil || res.StatusCode < 400 || res.StatusCode >= 500 || strings.Contains(body.String(), token) {
			t.Errorf("%s answered %d: %s (%v)", r.URL.Path, res.StatusCode, body.String(), err)
		}
	}
	s.stop(syscall.SIGTERM) // so that all is in its log
	if strings.Contains(s.Log(), token) {
		t.Errorf("the token is in the server's log")
	}
}
