package handlers_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
	"potato/runners/runnertest"
)

// Whose key opens which door: no admin route takes a token, no agent route takes the admin's key (A3, G8).
func TestTokensAndKeysOpenTheirOwnDoorsOnly(t *testing.T) {
	l := serveLab(t, "", nil)
	old := l.tokens["lab"]
	token := l.register("lab")
	if old == token || len(token) < 40 {
		t.Fatalf("got the tokens %q and %q", old, token)
	}
	admins, agents := 0, 0
	for path, item := range l.doc.Paths {
		path := strings.NewReplacer("{run_id}", noRun, "{name}", "lab", "{os}", "plan9", "{arch}", "mips").Replace(path)
		for method, op := range map[string]*huma.Operation{
			"GET": item.Get, "POST": item.Post, "PUT": item.Put, "PATCH": item.Patch, "DELETE": item.Delete, "HEAD": item.Head,
		} {
			if op == nil || len(op.Security) == 0 {
				continue
			}
			code := func(name string, status int, code string, changes ...change) {
				t.Helper()
				a := l.do(method, path, "{broken", changes...)
				if a.StatusCode != status || method != "HEAD" && a.problem(t).Code != code {
					t.Errorf("%s %s with %s: %d %s, want %d %s", method, path, name, a.StatusCode, a.text, status, code)
				}
			}
			if op.Security[0]["agentToken"] == nil {
				admins++
				code("an agent's token", 401, "unauthenticated", bearer(token))
				code("an agent's token as key", 401, "wrong_key", noKey, header("X-API-Key", token))
				continue
			}
			agents++
			code("nothing", 401, "token_unknown", noKey)
			code("the admin's key", 401, "token_unknown")
			code("the admin's key as a token", 401, "token_unknown", bearer(l.key))
			code("a token that was never issued", 401, "token_unknown", bearer(strings.Repeat("x", 50)))
			code("another scheme", 401, "token_unknown", noKey, header("Authorization", "Basic "+token))
			code("the hash of a token", 401, "token_unknown", bearer(sha(token)))
			code("a replaced token", 401, "token_revoked", bearer(old))
			if a := l.do(method, path, nil, bearer(token), header("Content-Type", "application/x-ndjson")); a.StatusCode == 401 {
				t.Errorf("%s %s refuses its own token: %s", method, path, a.text)
			}
		}
	}
	if admins < 15 || agents < 8 {
		t.Errorf("looked at %d admin and %d agent operations", admins, agents)
	}
	l.nowhere(old)
	l.nowhere(token)
}

func sha(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// nowhere fails when a secret is in the server's log or anywhere below its training folder.
func (l *lab) nowhere(secret string) {
	l.t.Helper()
	if strings.Contains(l.logs.String(), secret) {
		l.t.Error("a token is in the server's log")
	}
	must(l.t, filepath.Walk(l.config.TrainingPath(), func(path string, info os.FileInfo, err error) error {
		// Python renames its bytecode while we look: a name that is gone holds nothing, its new one is looked at in turn.
		if errors.Is(err, fs.ErrNotExist) && path != l.config.TrainingPath() {
			return nil
		}
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), secret) {
			l.t.Errorf("a token is in %s", path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
}

// Debug gives this machine's requests an admin's rights, and no agent's (A4).
func TestDebugIsNoToken(t *testing.T) {
	l := serveLab(t, "", nil)
	l.do("POST", "/api/training/jobs/claim", `{"agent_id":"a","claim_id":"c","host":"h","version":"1"}`, noKey, host("localhost")).refused(t, 401, "token_unknown")
}

func TestIssueToken(t *testing.T) {
	l := serveLabOn(t, runnertest.Study(t, "  backends:\n    lab: {type: agent}\n    other: {type: agent}\n    gpu: {type: ssh, host: gpu.example.org}\n"), nil)
	a := l.do("POST", below("/backends/lab/token"), nil).ok(t, 201)
	issued := decode[api.IssuedToken](t, a)
	if issued.Backend != "lab" || !issued.Replaced || issued.Token == "" || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("got %+v, %v", issued, a.Header)
	}
	l.do("POST", below("/backends/local/token"), nil).refused(t, 409, "not_an_agent_backend")
	l.do("POST", below("/backends/gpu/token"), nil).refused(t, 409, "not_an_agent_backend")
	l.do("POST", below("/backends/lob/token"), nil).refused(t, 404, "unknown_backend")
	l.do("POST", below("/backends/"+url.PathEscape("a/b")+"/token"), nil).refused(t, 404, "unknown_backend")
	l.do("POST", below("/backends/lab/token"), nil, header("Sec-Fetch-Site", "cross-site")).refused(t, 403, "cross_origin")
}

// A token is for its backend's runs: of all others it does not even say that they are there.
func TestOtherBackendsRunsAreNotThere(t *testing.T) {
	l := serveLab(t, "", nil)
	mine := l.on("lab", nil)
	w := l.agent("lab", "a").claim("c")
	stranger := l.agent("other", "b")
	stranger.job = w.job
	for what, body := range map[string]any{"progress": `{"events":[]}`, "heartbeat": nil, "finish": `{}`} {
		stranger.say("POST", what, body).refused(t, 404, "run_not_found")
	}
	stranger.say("GET", "bundle", nil).refused(t, 404, "run_not_found")
	stranger.put(nil).refused(t, 404, "run_not_found")
	if a := stranger.head(); a.StatusCode != 404 {
		t.Errorf("HEAD predictions: %d", a.StatusCode)
	}
	if a := stranger.ask("c2", 0, api.Held{RunID: mine, Lease: w.job.Lease}); a.StatusCode != 204 {
		t.Errorf("another backend's held run: %d %s", a.StatusCode, a.text)
	}
	q := api.ClaimRequest{AgentID: "b", ClaimID: "c3", Host: "h", Version: "1", Backend: "lab"}
	l.do("POST", "/api/training/jobs/claim", q, bearer(l.tokens["other"])).refused(t, 401, "token_of_another_backend")
	stranger.id = "a"
	if a := stranger.ask("c", 0); a.StatusCode != 204 {
		t.Errorf("another backend's question: %d %s", a.StatusCode, a.text)
	}
	w.train()
	l.await(mine, api.RunSuccess)
	stranger.say("POST", "finish", `{}`).refused(t, 404, "run_not_found")
}

// G8: registering again ends the old agent's access at once, in the midst of a run too; with the new token the agent finds
// its job again.
func TestRegisterAgainInMidRun(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "", nil)
	id := l.on("lab", nil)
	w := l.agent("lab", "a").claim("c")
	w.built()
	w.tell(event(1, api.EventStatus, func(e *api.Event) { e.Step = "fitting" }))
	waits := make(chan answer, 1)
	go func() { waits <- l.agent("other", "x").ask("c9", 1) }() // an agent of another backend is left alone
	was := w.token
	w.token = l.register("lab")
	old := *w
	old.token = was
	for _, what := range []string{"progress", "heartbeat", "finish"} {
		old.say("POST", what, `{"events":[]}`).refused(t, 401, "token_revoked")
	}
	old.ask("c3", 0).refused(t, 401, "token_revoked")
	again := decode[api.Job](t, w.ask("c4", 0, api.Held{RunID: id, Lease: w.job.Lease}).ok(t, 200))
	if again.RunID != id || again.Lease != w.job.Lease || again.NextSeq != 2 {
		t.Errorf("got %+v, want the job with its events counted", again)
	}
	w.job = again
	w.train()
	l.await(id, api.RunSuccess)
	if a := <-waits; a.StatusCode != http.StatusNoContent {
		t.Errorf("the other agent got %d %s", a.StatusCode, a.text)
	}
}
