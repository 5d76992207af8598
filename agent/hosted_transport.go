package agent

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"potato/api"
)

// transport is the way to the server: the socket that it has made here, or standard input and output, over which one
// connection carries all calls at once.
func (h HostedJob) transport(in io.Reader, out io.Writer) (http.RoundTripper, error) {
	t := &http.Transport{Protocols: new(http.Protocols), IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4}
	if h.Socket != "" {
		t.Protocols.SetHTTP1(true)
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return dialServer(ctx, h.Socket) }
		return t, nil
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	var once sync.Once
	t.DialContext = func(context.Context, string, string) (conn net.Conn, err error) {
		err = errors.New("the session with the server has ended")
		once.Do(func() { conn, err = &stdioConn{Reader: in, Writer: out}, nil })
		return conn, err
	}
	return t, nil
}

// dialServer connects to the server's socket, when it is ours: the token goes through it.
func dialServer(ctx context.Context, path string) (net.Conn, error) {
	about, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if st, ok := about.Sys().(*syscall.Stat_t); !ok || about.Mode()&os.ModeSocket == 0 || int(st.Uid) != os.Getuid() {
		return nil, api.Deniedf("start_failed", "%s is not this account's socket", path)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if uid, err := peerUID(conn.(*net.UnixConn)); err == nil && uid != os.Getuid() && uid != 0 {
		return nil, errors.Join(api.Deniedf("start_failed", "another account serves %s", path), conn.Close())
	}
	return conn, nil
}

// stdioConn is standard input and output as a connection.
type stdioConn struct {
	io.Reader
	io.Writer
}

func (stdioConn) Close() error                     { return nil }
func (stdioConn) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "stdio", Net: "unix"} }
func (stdioConn) RemoteAddr() net.Addr             { return &net.UnixAddr{Name: "stdio", Net: "unix"} }
func (stdioConn) SetDeadline(time.Time) error      { return nil }
func (stdioConn) SetReadDeadline(time.Time) error  { return nil }
func (stdioConn) SetWriteDeadline(time.Time) error { return nil }
