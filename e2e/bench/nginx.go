package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// nginx serves a folder.
type nginx struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has
	url   string
}

// startNginx serves a folder as nginx does best: one worker, sendfile, no log.
func (b *bench) startNginx(ctx context.Context, folder string) (*nginx, error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		program = "/usr/sbin/nginx" // not on every account's PATH
	}
	if _, err := os.Stat(program); err != nil {
		return nil, errors.New("nginx is missing; its Debian package is nginx")
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir := b.folder("nginx")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "nginx.conf")
	err = os.WriteFile(config, fmt.Appendf(nil, `daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
  access_log off; sendfile on; tcp_nopush on;
  client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  server { listen 127.0.0.1:%[2]s; root %[3]s; }
}
`, dir, port, folder), 0o600)
	if err != nil {
		return nil, err
	}
	n := &nginx{cmd: exec.Command(program, "-c", config, "-e", filepath.Join(dir, "error.log")), ended: make(chan struct{}), url: "http://127.0.0.1:" + port}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(n.ended)
		_ = n.cmd.Wait() // stop waits for it
	}()
	for deadline := time.Now().Add(10 * time.Second); ; {
		request, err := http.NewRequestWithContext(ctx, http.MethodHead, n.url, nil)
		if err != nil {
			return nil, errors.Join(err, n.stop())
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			return n, answer.Body.Close()
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			text, _ := os.ReadFile(filepath.Join(dir, "error.log")) // it may not have come that far
			return nil, errors.Join(fmt.Errorf("nginx does not answer: %w\n%s", err, text), n.stop())
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

func (n *nginx) stop() error {
	err := n.cmd.Process.Kill()
	<-n.ended
	if errors.Is(err, os.ErrProcessDone) {
		return errors.New("nginx has ended by itself")
	}
	return err
}
