package e2e_test

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// nginx starts a real nginx with its default limits in front of the server and returns its address.
func nginx(t *testing.T, s *server, settings string) string {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx"
	}
	_, err = os.Stat(program)
	need(t, err == nil, "nginx, the Debian package")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, "nginx.conf", fmt.Sprintf(`daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
  access_log off; client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  server { listen %[2]s; %[3]s location / { proxy_pass %[4]s; } }
}
`, dir, address, settings, s.URL))
	cmd := exec.Command(program, "-c", filepath.Join(dir, "nginx.conf"), "-e", filepath.Join(dir, "error.log"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		res, err := http.Get("http://" + address + "/healthz")
		if err == nil {
			_ = res.Body.Close()
			return "http://" + address
		}
		if time.Now().After(deadline) {
			log, _ := os.ReadFile(filepath.Join(dir, "error.log"))
			t.Fatalf("nginx does not answer: %v\n%s", err, log)
		}
	}
}

// T42: behind an nginx as it comes, with a body limit below the predictions' size, the agent uploads in smaller pieces.
func TestAgentBehindNginx(t *testing.T) {
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	front := nginx(t, s, "client_max_body_size 100k;")
	id := s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "backend": workstation})
	trainOnce(t, front, token)
	s.finished(id, "success")
}

// T42: an nginx that takes less than the smallest piece is named with the setting to raise.
func TestAgentBehindATightNginx(t *testing.T) {
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	front := nginx(t, s, "client_max_body_size 10k;")
	id := s.post(map[string]any{"trainer": "sklearn-text", "schemas": []string{"sentiment"}, "backend": workstation})
	trainOnce(t, front, token)
	r := s.finished(id, "error")
	if said := r.Error + " " + r.Hint; !strings.Contains(said, "client_max_body_size") {
		t.Errorf("the error does not name nginx's setting: %q", said)
	}
}

// trainOnce runs `potato training agent --once` on this machine and waits for it.
func trainOnce(t *testing.T, server, token string) {
	t.Helper()
	cmd := exec.Command(potato(t), "training", "agent", "--server", server, "--backend", workstation, "--once",
		"--workdir", t.TempDir(), "--python", python(t))
	cmd.Env = append(os.Environ(), "POTATO_TRAINING_TOKEN="+token)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Logf("the agent left with %v and said:\n%s", err, out)
	}
}
