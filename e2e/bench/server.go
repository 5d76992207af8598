package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// server is a running product on a study of its own.
type server struct {
	cmd     *exec.Cmd
	ended   chan struct{} // closed when it has
	study   string
	url     string
	log     string
	started time.Duration // from the command to the first page
}

// startPeer starts the published tool on a study, startOurs this server. Their flags are the same.
func (b *bench) startPeer(ctx context.Context, study string) (*server, error) {
	return start(ctx, b.peerProgram(), study)
}

func (b *bench) startOurs(ctx context.Context, study string) (*server, error) {
	return start(ctx, b.potato, study)
}

func start(ctx context.Context, program, study string, more ...string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	s := &server{study: study, url: "http://127.0.0.1:" + port, log: filepath.Join(study, "server.log"), ended: make(chan struct{})}
	out, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close() //nolint:errcheck // the server has its own handle on it
	s.cmd = exec.Command(program, append([]string{"start", filepath.Join(study, "config.yaml"), "--port", port, "--host", "127.0.0.1"}, more...)...)
	s.cmd.Dir = study
	s.cmd.Stdout, s.cmd.Stderr = out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is ours; it stops the servers in their order
	begin := time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait() // how it ended is in ProcessState
	}()
	if err := s.awaitPage(ctx); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	s.started = time.Since(begin)
	return s, nil
}

// awaitPage asks for the page at / until it comes, redirects followed.
func (s *server) awaitPage(ctx context.Context) error {
	const limit = 5 * time.Minute
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var last string
	for {
		if code, err := page(ctx, s.url); err != nil {
			last = err.Error()
		} else if code == http.StatusOK {
			return nil
		} else {
			last = strconv.Itoa(code)
		}
		select {
		case <-s.ended:
			return fmt.Errorf("%s ended before it answered: %s; its log is %s", s.cmd.Path, s.cmd.ProcessState, s.log)
		case <-ctx.Done():
			return fmt.Errorf("%s has no page at / yet: %s; its log is %s", s.cmd.Path, last, s.log)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func page(ctx context.Context, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, errors.Join(err, l.Close())
}

// stop ends the server as an operator would; what will not end in ten seconds is killed.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(10 * time.Second):
	}
	err := s.cmd.Process.Kill()
	<-s.ended
	return err
}
