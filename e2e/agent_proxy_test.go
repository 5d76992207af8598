package e2e_test

import (
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// behindProxy is a host that nobody but the proxy finds.
const behindProxy = "annotate.example.invalid"

// proxy is one as universities have it: it wants a user name and a password, and leads to the server alone.
type proxy struct {
	*httptest.Server
	to      string
	through atomic.Int64
}

const proxyPassword = "mira:a-secret-of-the-proxy"

func newProxy(t *testing.T, s *server) *proxy {
	t.Helper()
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{to: u.Host}
	plain := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: u.Host}) }, FlushInterval: -1}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Proxy-Authorization") != "Basic "+base64.StdEncoding.EncodeToString([]byte(proxyPassword)):
			w.Header().Set("Proxy-Authenticate", `Basic realm="campus"`)
			http.Error(w, "<html>Who are you?</html>", http.StatusProxyAuthRequired)
		case !strings.HasPrefix(r.Host, behindProxy):
			http.Error(w, "no such host: "+r.Host, http.StatusBadGateway)
		case r.Method == http.MethodConnect:
			p.through.Add(1)
			p.connect(w)
		default:
			p.through.Add(1)
			plain.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// connect carries a connection to the server until either side ends it.
func (p *proxy) connect(w http.ResponseWriter) {
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer far.Close()
	w.WriteHeader(http.StatusOK)
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(far, buffered)
		_ = far.Close()
	})
	_, _ = io.Copy(near, far)
	_ = near.Close()
	up.Wait()
}

// T41: whole runs go through a proxy, over http and, by CONNECT, over https to a server with an authority of its own. The
// proxy's password is told to nobody; without it the agent says what is missing.
func TestAgentBehindAProxy(t *testing.T) {
	t.Parallel()
	certs := t.TempDir()
	pool := authority(t, certs)
	for scheme, args := range map[string][]string{"http": nil, "https": {"--tls-cert", filepath.Join(certs, "cert.pem"), "--tls-key", filepath.Join(certs, "key.pem")}} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			dir := agentStudy(t)
			token := register(t, filepath.Join(dir, "config.yaml"))
			s := start(t, dir, args...)
			s.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
			p := newProxy(t, s)
			agent := func(user string) *agentProgram {
				cmd := exec.Command(potato(t), "training", "agent", "--server", scheme+"://"+behindProxy, "--backend", workstation, "--once",
					"--workdir", t.TempDir(), "--python", python(t), "--ca", filepath.Join(certs, "ca.pem"))
				cmd.Env = append(os.Environ(), strings.ToUpper(scheme)+"_PROXY="+strings.Replace(p.URL, "http://", "http://"+user, 1))
				return launch(t, token, cmd)
			}
			a := agent("")
			a.leaves(1)
			if !strings.Contains(a.said(), "wants a user name and a password (407)") || strings.Contains(a.said(), "<html>") {
				t.Errorf("without a password the agent said:\n%s", a.said())
			}
			if n := p.through.Load(); n > 0 {
				t.Errorf("%d requests went through without one", n)
			}
			id := s.agentTextRun(0)
			a = agent(proxyPassword + "@")
			s.finished(id, "success")
			a.leaves(0)
			if p.through.Load() == 0 {
				t.Error("the run did not go through the proxy")
			}
			_, password, _ := strings.Cut(proxyPassword, ":")
			if text := a.said() + strings.Join(s.agentLog(id), "\n") + s.Log(); strings.Contains(text, password) {
				t.Errorf("the proxy's password is in:\n%s", text)
			}
		})
	}
}
