package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"syscall"

	"potato/api"
	"potato/project"
)

// listenAddress is where a study is served when nobody names an address: on all interfaces, as the annotation tool does,
// since agents come from other machines (K1); on this machine alone when anyone could be admin. why is then the reason,
// as a sentence.
func listenAddress(c *project.Config, debug bool) (host, why string) {
	const loopback = "127.0.0.1"
	switch weak := weakness(c.AdminAPIKey); {
	case debug:
		return loopback, "debug is on: listening on this machine only; --host ADDRESS opens the server to others, and debug then gives nobody admin rights"
	case weak != "":
		return loopback, fmt.Sprintf("admin_api_key %s: listening on this machine only; set one of at least 16 characters in %s to open the server to others, "+
			"or name an address with --host", weak, c.File)
	}
	return "", ""
}

// weakness says what is wrong with an admin key, as the end of a sentence; a good one has none.
func weakness(key project.Secret) string {
	switch text := key.Reveal(); {
	case !key.Weak():
		return ""
	case text == "":
		return "is missing"
	case text == "change-me":
		return "is the example's change-me"
	case strings.HasPrefix(text, "$"):
		return "names an environment variable that is not set"
	}
	return "has fewer than 16 characters"
}

// listen opens the port and says what to do when it cannot be had.
func listen(ctx context.Context, host string, port int) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	var dns *net.DNSError
	switch {
	case err == nil:
		return l, nil
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, api.Conflictf("port_taken", "port %d is taken; the annotation tool uses 8000 by default too", port).
			WithHint("choose another with --port, or 0 for a free one").WithCause(err)
	case errors.Is(err, syscall.EACCES):
		return nil, api.Deniedf("port_denied", "this account may not listen on port %d", port).
			WithHint("choose one from 1024 with --port").WithCause(err)
	case errors.Is(err, syscall.EADDRNOTAVAIL), errors.As(err, &dns):
		return nil, api.Invalidf("bad_host", "%s is no address of this machine", host).
			WithHint("name one with --host; 0.0.0.0 is all of them").WithCause(err)
	}
	return nil, fmt.Errorf("listen on %s: %w", net.JoinHostPort(host, strconv.Itoa(port)), err)
}

// onThisMachineOnly reports whether nobody elsewhere can reach the listener.
func onThisMachineOnly(l net.Listener) bool {
	a, ok := l.Addr().(*net.TCPAddr)
	return ok && a.IP.IsLoopback()
}

// siteURL is an address that a browser on this machine can open.
func siteURL(l net.Listener, tls bool) string {
	scheme, host := "http", "localhost"
	if tls {
		scheme = "https"
	}
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return scheme + "://" + l.Addr().String()
	}
	if !a.IP.IsUnspecified() {
		host = a.IP.String()
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(a.Port))
}
