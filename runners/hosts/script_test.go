package hosts_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"potato/runners/hosts"
)

// Whatever shell and rc files an account has, a script's answer is its own (T22, T23).
func TestEveryLoginShellRunsScripts(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		for _, host := range []string{"target", "target-tcsh", "target-fish", "jumped", "commanded", "included", "matched"} {
			t.Run(host, func(t *testing.T) {
				c := dial(t, hosts.Target{Host: host, Transport: transport}, options(t))
				a := run(t, c, hosts.Script{
					Env:  map[string]string{"OMP_NUM_THREADS": "3", "ODD": "it's $HOME !x \"y\"\nz"},
					Text: `printf '%s|%s|' "$OMP_NUM_THREADS" "$ODD"; echo 'to stderr' >&2; X=1; [ "$X" = 1 ] && printf '%s' "${FROM_RC:+rc}"; exit 3`,
				})
				if got, want := string(a.Out), "3|it's $HOME !x \"y\"\nz|rc"; got != want || a.Code != 3 {
					t.Errorf("got %q and %d, want %q and 3", got, a.Code, want)
				}
				if !strings.Contains(a.Stderr, "to stderr") {
					t.Errorf("stderr is %q", a.Stderr)
				}
			})
		}
	})
}

// What a script reads is not swallowed by a shell that reads ahead, and binary data comes back as it went.
func TestScriptsReadAndWriteStreams(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		sent := make([]byte, 3<<20)
		_, _ = rand.Read(sent)
		for _, host := range []string{"target", "target-tcsh"} {
			c := dial(t, hosts.Target{Host: host, Transport: transport}, options(t))
			var got bytes.Buffer
			run(t, c, hosts.Script{Text: "cat; cat", Stdin: bytes.NewReader(sent), Stdout: &got})
			if !bytes.Equal(got.Bytes(), sent) {
				t.Errorf("%s: %d bytes came back of %d", host, got.Len(), len(sent))
			}
		}
	})
}

// An account without a shell is told from a connection that broke.
func TestAccountWithoutShell(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		c, err := hosts.Dial(t.Context(), hosts.Target{Host: "target-none", Transport: transport}, options(t))
		if err == nil {
			defer c.Close()
			_, err = c.Run(t.Context(), hosts.Script{Text: "true"})
		}
		if err == nil || !strings.Contains(err.Error(), "This account is currently not available") {
			t.Errorf("got %v", err)
		}
	})
}

// Leaving a script ends it: whoever waits is not held by a host that does not answer.
func TestLeavingAScript(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		c := dial(t, hosts.Target{Host: "target", Transport: transport}, options(t))
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := c.Run(ctx, hosts.Script{Text: "sleep 20"})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 5*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
		if a := run(t, c, hosts.Script{Text: "echo still here"}); string(a.Out) != "still here\n" {
			t.Errorf("then %q", a.Out)
		}
	})
}

// Connections to a socket there arrive here; nobody else may connect.
func TestForwardedSocket(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		c := dial(t, hosts.Target{Host: "target", Transport: transport}, options(t))
		dir := strings.TrimSpace(string(run(t, c, hosts.Script{Text: "mktemp -d /tmp/potato-XXXXXX"}).Out))
		defer run(t, c, hosts.Script{Text: "rm -rf " + hosts.Quote(dir)})
		l, err := c.Listen(t.Context(), dir+"/s")
		if err != nil {
			t.Fatalf("listen: %v: %v", err, errors.Unwrap(err))
		}
		answered := make(chan error, 1)
		go func() {
			conn, err := l.Accept()
			if err == nil {
				_, err = io.WriteString(conn, "hello from the server")
				err = errors.Join(err, conn.Close())
			}
			answered <- err
		}()
		a := run(t, c, hosts.Script{Text: `stat -c %a ` + dir + `/s; python3 -c 'import socket,sys
s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(100).decode())' ` + dir + `/s`})
		if got, want := string(a.Out), "600\nhello from the server\n"; got != want {
			t.Errorf("got %q, want %q; %s", got, want, a.Stderr)
		}
		if err := <-answered; err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestForwardingForbidden(t *testing.T) {
	each(t, func(t *testing.T, transport string) {
		c := dial(t, hosts.Target{Host: "forbidden", Transport: transport}, options(t))
		l, err := c.Listen(t.Context(), "/tmp/potato-never/s")
		if err == nil {
			_ = l.Close()
			t.Fatal("it forwards")
		}
		if !strings.Contains(err.Error(), "does not forward unix sockets") {
			t.Errorf("got %v", err)
		}
		if a := run(t, c, hosts.Script{Text: "echo works all the same"}); a.Code != 0 {
			t.Errorf("then %+v", a)
		}
	})
}
