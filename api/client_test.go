package api_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
)

// asks starts a server that answers every request the same way, and reports to it.
func asks(t *testing.T, answer http.HandlerFunc) error {
	t.Helper()
	s := httptest.NewServer(answer)
	defer s.Close()
	hc, err := api.NewHTTPClient("")
	if err != nil {
		t.Fatal(err)
	}
	defer hc.CloseIdleConnections()
	c := &api.Client{BaseURL: s.URL, Token: token, HTTP: hc, CallTimeout: 2 * time.Second}
	_, err = c.Progress(t.Context(), agenttest.Job(), nil)
	return err
}

// What comes of an answer: which kinds are tried again is the contract with agent.Work.
func TestClientErrors(t *testing.T) {
	t.Parallel()
	plain := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			// A page that shows what it was sent, as debugging proxies do.
			http.Error(w, "<html>"+r.Header.Get("Authorization")+"</html>", status)
		}
	}
	problem := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json; charset=utf-8")
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		kind   api.Kind
		code   string
		text   string
	}{
		"lease moved":      {problem(409, `{"code":"lease_moved","detail":"another agent has it"}`), api.KindConflict, "lease_moved", "another agent has it"},
		"run over":         {problem(410, `{"code":"run_over","detail":"it is over"}`), api.KindGone, "run_over", "it is over"},
		"token":            {problem(401, `{"code":"token_revoked","detail":"replaced"}`), api.KindUnauthenticated, "token_revoked", "replaced"},
		"run not found":    {problem(404, `{"code":"run_not_found","detail":"no such run"}`), api.KindNotFound, "run_not_found", "no such run"},
		"too large":        {problem(413, `{"code":"predictions_too_large","detail":"too large"}`), api.KindTooLarge, "predictions_too_large", "too large"},
		"all its problems": {problem(422, `{"code":"invalid_request","detail":"bad","errors":[{"path":"body.x","message":"is wrong"}]}`), api.KindInvalid, "invalid_request", "bad; body.x: is wrong"},
		"too many":         {problem(429, `{"code":"too_many_requests","detail":"slower"}`), api.KindTooMany, "too_many_requests", "slower"},
		"unavailable":      {problem(503, `{"code":"bundle_not_ready","detail":"not yet"}`), api.KindUnavailable, "bundle_not_ready", "not yet"},
		"internal":         {problem(500, `{"code":"internal","detail":"internal error"}`), api.KindInternal, "internal", "internal error"},
		"our token in it":  {problem(422, `{"code":"x","detail":"got `+token+` \u001b[31m"}`), api.KindInvalid, "x", "got …  [31m"},
		"no code":          {problem(409, `{"detail":"who says so?"}`), api.KindUnavailable, "not_the_server", ""},
		"a stranger's 404": {plain(404), api.KindUnavailable, "not_the_server", "404 Not Found"},
		"a stranger's 401": {plain(401), api.KindUnavailable, "not_the_server", "401 Unauthorized"},
		"a stranger's 410": {plain(410), api.KindUnavailable, "not_the_server", "410 Gone"},
		"bad gateway":      {plain(502), api.KindUnavailable, "server_unreachable", "502 Bad Gateway"},
		"a proxy's 413":    {plain(413), api.KindTooLarge, "proxy_limit", "413"},
		"a proxy's 407":    {plain(407), api.KindUnavailable, "proxy_refused", "user name and a password (407)"},
		"sent on": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://other.example.org/x?token=1", http.StatusMovedPermanently)
		}, api.KindUnavailable, "not_the_server", "it sends us on to https://other.example.org"},
		"a page": {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }, api.KindUnavailable, "not_the_server", "not JSON"},
		"cut":    {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, api.KindUnavailable, "server_unreachable", "cannot be reached"},
		"silence": {func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only then it is seen that the client has left
			<-r.Context().Done()
		}, api.KindUnavailable, "server_unreachable", "did not answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := asks(t, c.answer)
			e := api.AsError(err)
			if e.Kind != c.kind || e.Code != c.code || !strings.Contains(e.Message, c.text) {
				t.Errorf("%s, %s: %q; want %s, %s: %q", e.Kind, e.Code, e.Message, c.kind, c.code, c.text)
			}
			for err := error(e); err != nil; err = errors.Unwrap(err) {
				if strings.Contains(err.Error(), token) {
					t.Errorf("the token is in %q", err)
				}
			}
			if strings.Contains(e.Message+e.Hint, "<html>") {
				t.Errorf("a stranger's text is in %q", e.Message)
			}
			if c.code == "bundle_not_ready" && api.RetryAfter(err) != 7*time.Second {
				t.Errorf("Retry-After: %v", api.RetryAfter(err))
			}
		})
	}
}

// Nobody listens, and there is no such host.
func TestClientFindsNobody(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]string{gone: "connection refused", "http://no-such-host.invalid": "no host no-such-host.invalid"} {
		c := &api.Client{BaseURL: url, Token: token, CallTimeout: 5 * time.Second}
		err := c.Finish(t.Context(), agenttest.Job(), api.Finish{})
		if e := api.AsError(err); e.Kind != api.KindUnavailable || !strings.Contains(e.Message, want) && !strings.Contains(e.Message, "in time") {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&api.Client{BaseURL: gone, Token: token}).Finish(ctx, agenttest.Job(), api.Finish{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// What is said arrives as it was said, and what is answered comes back so.
func TestClientCalls(t *testing.T) {
	t.Parallel()
	server := agenttest.NewServer(token)
	server.HeartbeatWait = 10 * time.Millisecond
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	c := &api.Client{BaseURL: s.URL + "/", Token: token, HTTP: s.Client()}
	ctx := t.Context()
	q := api.ClaimRequest{AgentID: "a", ClaimID: "c1", Host: "h", Version: "v"}
	if job, err := c.Claim(ctx, q); job != nil || err != nil {
		t.Fatalf("an empty queue: %v, %v", job, err)
	}
	put := agenttest.Job(agenttest.Step{"sleep", 1})
	server.Add(put, agenttest.Archive(t))
	got, err := c.Claim(ctx, q)
	if err != nil || got == nil || got.RunID != put.RunID || got.GraceSeconds != put.GraceSeconds || got.NextSeq != 1 {
		t.Fatalf("claim: %+v, %v", got, err)
	}
	if again, err := c.Claim(ctx, q); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("the same question: %+v, %v; want %+v", again, err, got)
	}
	want := []api.Event{{V: 1, Event: api.EventLog, Seq: 1, Msg: "a\u2028b <&>", Level: "info"}, {V: 1, Event: api.EventStatus, Seq: 2, Step: "x"}}
	a, err := c.Progress(ctx, *got, want)
	if err != nil || a.NextSeq != 3 || a.Cancel {
		t.Errorf("progress: %+v, %v", a, err)
	}
	if events := server.Run(put.RunID).Events; !reflect.DeepEqual(events, want) {
		t.Errorf("events: %+v, want %+v", events, want)
	}
	server.Cancel(put.RunID)
	if a, err := c.Heartbeat(ctx, *got); err != nil || !a.Cancel || a.GraceSeconds != put.GraceSeconds {
		t.Errorf("heartbeat: %+v, %v", a, err)
	}
	code := 143
	finish := api.Finish{ExitCode: &code, Cancelled: true, ArtifactURI: "h:/a", Stderr: []string{"x"}, Environment: map[string]string{"python": "3"}}
	for range 2 {
		if err := c.Finish(ctx, *got, finish); err != nil {
			t.Errorf("finish: %v", err)
		}
	}
	if f := server.Run(put.RunID).Finish; !reflect.DeepEqual(*f, finish) {
		t.Errorf("finish: %+v, want %+v", f, finish)
	}
	if _, err := c.Progress(ctx, *got, want); !api.HasCode(err, "run_over") {
		t.Errorf("after the end: %v", err)
	}
}

// A job that could lead outside of the agent's folders is no job.
func TestClaimOfNoJob(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{}`, `{"run_id":"../../x","lease":"l"}`, `{"run_id":"20261129T192252-d3d870"}`, `[]`} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		job, err := (&api.Client{BaseURL: s.URL, Token: token, HTTP: s.Client()}).Claim(t.Context(), api.ClaimRequest{AgentID: "a", ClaimID: "c"})
		s.Close()
		if job != nil || !api.Misdirected(err) {
			t.Errorf("%s: %+v, %v", body, job, err)
		}
	}
}

// T42: reports that a proxy refuses for their size go in parts.
func TestProgressPastAProxysLimit(t *testing.T) {
	t.Parallel()
	server := agenttest.NewServer(token)
	server.Before = limit(20_000, nil)
	s := httptest.NewServer(server)
	t.Cleanup(s.Close)
	c := &api.Client{BaseURL: s.URL, Token: token, HTTP: s.Client()}
	server.Add(agenttest.Job(), agenttest.Archive(t))
	job, err := c.Claim(t.Context(), api.ClaimRequest{AgentID: "a", ClaimID: "c"})
	if err != nil {
		t.Fatal(err)
	}
	var events []api.Event
	for i := range 100 {
		events = append(events, api.Event{V: 1, Event: api.EventLog, Seq: int64(i) + 1, Msg: strings.Repeat("x", 1000)})
	}
	for calls := 0; len(events) > 0; calls++ {
		a, err := c.Progress(t.Context(), *job, events)
		if err != nil || calls > 20 {
			t.Fatalf("call %d: %v", calls, err)
		}
		events = events[a.NextSeq-events[0].Seq:]
	}
}

// T41: a server whose certificate nobody here knows is not talked to, and the error says what to do.
func TestClientCertificates(t *testing.T) {
	t.Parallel()
	server := agenttest.NewServer(token)
	s := httptest.NewUnstartedServer(server)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of our refusals
	s.StartTLS()
	t.Cleanup(s.Close)
	claim := func(caFile string) error {
		hc, err := api.NewHTTPClient(caFile)
		if err != nil {
			return err
		}
		defer hc.CloseIdleConnections()
		_, err = (&api.Client{BaseURL: s.URL, Token: token, HTTP: hc}).Claim(t.Context(), api.ClaimRequest{AgentID: "a", ClaimID: "c"})
		return err
	}
	err := claim("")
	if !api.Misdirected(err) || !strings.Contains(err.Error(), "certificate signed by unknown authority: pass --ca FILE") {
		t.Errorf("unknown authority: %v", err)
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := claim(ca); err != nil {
		t.Errorf("with --ca: %v", err)
	}
	if err := claim(ca + "x"); !api.HasCode(err, "ca_file") {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(ca, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := claim(ca); !api.HasCode(err, "ca_file") {
		t.Errorf("a file without a certificate: %v", err)
	}
}

func TestParseServerURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"https://annotate.example.org":                    "https://annotate.example.org",
		"https://annotate.example.org/":                   "https://annotate.example.org",
		" http://10.0.0.5:8000/ ":                         "http://10.0.0.5:8000",
		"https://example.org/potato/":                     "https://example.org/potato",
		"https://example.org/potato/admin/training/":      "https://example.org/potato",
		"http://[::1]:8000":                               "http://[::1]:8000",
		"annotate.example.org":                            "",
		"annotate.example.org:8000":                       "",
		"ftp://annotate.example.org":                      "",
		"https://":                                        "",
		"https://user:" + token + "@annotate.example.org": "",
		"https://annotate.example.org/?key=" + token:      "",
		"http://<this-server>:8000":                       "",
		"":                                                "",
	} {
		got, err := api.ParseServerURL(in)
		if got != want || (err == nil) == (want == "") {
			t.Errorf("%q: %q, %v; want %q", in, got, err, want)
		}
		if err != nil && strings.Contains(err.Error()+api.AsError(err).Hint, token) {
			t.Errorf("%q: the secret is in %v", in, err)
		}
	}
	for url, want := range map[string]bool{
		"http://annotate.example.org": true, "http://10.0.0.5:8000": true, "https://annotate.example.org": false,
		"http://localhost:8000": false, "http://127.0.0.1:8000": false, "http://[::1]:8000": false,
	} {
		if got := api.InTheClear(url); got != want {
			t.Errorf("InTheClear(%s) = %v", url, got)
		}
	}
}
