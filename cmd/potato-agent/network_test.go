package main_test

import (
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"potato/agent/agenttest"
	"potato/api"
)

func listen(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// secure serves the machine's server by https with a certificate that nobody knows, and writes that to a file.
func (m *machine) secure() (url, ca string) {
	m.Helper()
	s := httptest.NewUnstartedServer(m.server)
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // of those who refuse the certificate
	s.StartTLS()
	m.Cleanup(s.Close)
	ca = filepath.Join(m.home, "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		m.Fatal(err)
	}
	return s.URL, ca
}

// T41: an unknown authority is refused with what to do; --ca and SSL_CERT_FILE do it.
func TestAgentCertificates(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	server, ca := m.secure()
	args := []string{"--server", server, "--backend", "lab", "--python", m.python, "--once"}
	token := "POTATO_TRAINING_TOKEN=" + m.token
	if code, out := m.answers(m.env(token), args...); code != 1 || !strings.Contains(out, "certificate signed by unknown authority: pass --ca FILE") {
		t.Errorf("exit code %d, %q", code, out)
	}
	for _, c := range []struct{ env, args []string }{
		{m.env(token), append([]string{"--ca", ca}, args...)},
		{m.env(token, "SSL_CERT_FILE="+ca), args},
	} {
		id := m.add(agenttest.Good(1)...)
		if code, out := m.answers(c.env, c.args...); code != 0 {
			t.Errorf("exit code %d, %q", code, out)
		}
		m.until(id, api.RunSuccess)
	}
}

// proxy is one that knows the way to potato.test, which nothing else does.
type proxy struct {
	target   string // host:port
	password string // that it wants; empty: none
	through  atomic.Int32
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.password != "" && r.Header.Get("Proxy-Authorization") == "" {
		w.Header().Set("Proxy-Authenticate", "Basic")
		http.Error(w, "<html>who are you?</html>", http.StatusProxyAuthRequired)
		return
	}
	p.through.Add(1)
	if r.Method != http.MethodConnect {
		httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: p.target}).ServeHTTP(w, r)
		return
	}
	there, err := net.Dial("tcp", p.target)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	_, _ = io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n")
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(there, buffered)
		_ = there.(*net.TCPConn).CloseWrite()
	}()
	_, _ = io.Copy(here, there)
	<-done
}

// T41: HTTPS_PROXY, HTTP_PROXY and NO_PROXY are heeded, and a proxy that wants a password is explained.
func TestAgentProxies(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	secure, ca := m.secure()
	token := "POTATO_TRAINING_TOKEN=" + m.token
	args := func(server string) []string {
		return []string{"--server", server, "--backend", "lab", "--python", m.python, "--ca", ca, "--once"}
	}
	_, port, err := net.SplitHostPort(strings.TrimPrefix(secure, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	tunnel := &proxy{target: "127.0.0.1:" + port}
	https := listen(t, tunnel)
	plain := &proxy{target: strings.TrimPrefix(m.url, "http://")}
	http := listen(t, plain)

	// The certificate of net/http/httptest is for example.com.
	id := m.add(agenttest.Good(1)...)
	if code, out := m.answers(m.env(token, "HTTPS_PROXY="+https.URL), args("https://example.com")...); code != 0 || tunnel.through.Load() == 0 {
		t.Errorf("HTTPS_PROXY: exit code %d, %d times through it, %q", code, tunnel.through.Load(), out)
	}
	m.until(id, api.RunSuccess)

	id = m.add(agenttest.Good(1)...)
	code, out := m.answers(m.env(token, "HTTP_PROXY="+http.URL), args("http://potato.test")...)
	if code != 0 || plain.through.Load() == 0 || !strings.Contains(out, "plain http to another machine") {
		t.Errorf("HTTP_PROXY: exit code %d, %d times through it, %q", code, plain.through.Load(), out)
	}
	m.until(id, api.RunSuccess)

	// The loopback address never goes through a proxy, and NO_PROXY names what else does not.
	before := tunnel.through.Load()
	p := m.startWith(m.env(token, "HTTPS_PROXY="+https.URL, "NO_PROXY=example.invalid"), args("https://agents.example.invalid")...)
	p.says("no answer; asking again")
	if tunnel.through.Load() != before {
		t.Error("NO_PROXY was not heeded")
	}
	p.signal(syscall.SIGTERM)
	p.leaves(0, "stopping")

	tunnel.password, plain.password = "secret", "secret"
	for _, server := range []string{"https://example.com", "http://potato.test"} {
		code, out := m.answers(m.env(token, "HTTPS_PROXY="+https.URL, "HTTP_PROXY="+http.URL), args(server)...)
		if code != 1 || !strings.Contains(out, "wants a user name and a password (407); put them into HTTPS_PROXY") || strings.Contains(out, "<html>") {
			t.Errorf("%s: exit code %d, %q", server, code, out)
		}
	}
	with := strings.Replace(https.URL, "http://", "http://me:secret@", 1)
	id = m.add(agenttest.Good(1)...)
	if code, out := m.answers(m.env(token, "HTTPS_PROXY="+with), args("https://example.com")...); code != 0 || strings.Contains(out, "secret") {
		t.Errorf("with a password: exit code %d, %q", code, out)
	}
	m.until(id, api.RunSuccess)
}

// T38: the server is away when the agent starts, and while it waits; the agent stays and says so once.
func TestAgentWaitsForItsServer(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	var away atomic.Bool
	away.Store(true)
	var asked atomic.Int32
	m.server.Before = func(w http.ResponseWriter, r *http.Request) bool {
		if isClaim(r) && away.Load() {
			asked.Add(1)
			http.Error(w, "", http.StatusBadGateway)
			return true
		}
		return false
	}
	id := m.add(agenttest.Good(1)...)
	p := m.start("--once")
	agenttest.Wait(t, "some questions", func() (bool, string) { return asked.Load() >= 3, p.out.String() })
	away.Store(false)
	p.leaves(0, "the server answers")
	m.until(id, api.RunSuccess)
	if n := strings.Count(p.out.String(), "no answer; asking again"); n != 1 {
		t.Errorf("it said %d times that there is no answer:\n%s", n, p.out)
	}
}
