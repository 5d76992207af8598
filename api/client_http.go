package api

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// NewHTTPClient makes the HTTP client of an agent. Proxies come from HTTPS_PROXY, HTTP_PROXY and NO_PROXY; caFile, when it
// is not empty, names authorities to trust beside those of the system and of SSL_CERT_FILE.
func NewHTTPClient(caFile string) (*http.Client, error) {
	t := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		OnProxyConnectResponse: proxyAnswer,
		DialContext:            (&net.Dialer{Timeout: 15 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    15 * time.Second,
		IdleConnTimeout:        50 * time.Second, // before a proxy's usual 60 s, so that we are the ones who close
		ExpectContinueTimeout:  2 * time.Second,
		MaxIdleConnsPerHost:    4,
		Protocols:              new(http.Protocols),
	}
	// One request a connection: a time-out closes the connection it happened on, which HTTP/2 would go on with.
	t.Protocols.SetHTTP1(true)
	pool, err := authorities(caFile)
	if err != nil {
		return nil, err
	}
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{
		Transport: t,
		// A POST that is sent on becomes a GET, and the token would go to someone else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

var defaultHTTP = sync.OnceValue(func() *http.Client {
	hc, err := NewHTTPClient("")
	if err != nil {
		return http.DefaultClient
	}
	return hc
})

// authorities are those of the system and of the files. Go reads SSL_CERT_FILE by itself on Linux and not on macOS.
func authorities(caFile string) (*x509.CertPool, error) {
	fromEnv := os.Getenv("SSL_CERT_FILE")
	if caFile == "" && fromEnv == "" {
		return nil, nil
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if fromEnv != "" {
		if b, err := os.ReadFile(fromEnv); err == nil {
			pool.AppendCertsFromPEM(b)
		}
	}
	if caFile == "" {
		return pool, nil
	}
	b, err := os.ReadFile(caFile)
	if err != nil {
		return nil, Invalidf("ca_file", "--ca %s cannot be read: %v", caFile, errors.Unwrap(err)).WithCause(err)
	}
	if !pool.AppendCertsFromPEM(b) {
		return nil, Invalidf("ca_file", "--ca %s holds no certificate", caFile).WithHint("it must be a PEM file: -----BEGIN CERTIFICATE-----")
	}
	return pool, nil
}

// proxyAnswer explains a proxy that does not connect us to the server.
func proxyAnswer(_ context.Context, proxy *url.URL, _ *http.Request, resp *http.Response) error {
	switch {
	case resp.StatusCode == http.StatusProxyAuthRequired:
		return proxyAuth(proxy.Host)
	case resp.StatusCode >= 500:
		return Unavailablef(codeUnreachable, "the proxy %s cannot reach the server: %s", proxy.Host, resp.Status)
	case resp.StatusCode != http.StatusOK:
		return Unavailablef(codeProxy, "the proxy %s refuses to connect to the server: %s", proxy.Host, resp.Status).
			WithHint("ask who runs the proxy to allow it, or name the server in NO_PROXY when it can be reached without the proxy")
	}
	return nil
}

// ParseServerURL checks a server's URL as it was given and returns the form that Client wants.
func ParseServerURL(s string) (string, error) {
	bad := func(format string, args ...any) (string, error) {
		return "", Invalidf("bad_server_url", format, args...).WithHint("it looks like https://annotate.example.org or http://10.0.0.5:8000")
	}
	u, err := url.Parse(strings.TrimSpace(s))
	switch {
	case err != nil:
		return bad("the server's URL cannot be read")
	case u.User != nil:
		return bad("the server's URL holds a user name or a password, which every user of this machine could see")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad("the server's URL must begin with http:// or https://")
	case u.Hostname() == "" || strings.ContainsAny(u.Hostname(), "<>"):
		return bad("the server's URL names no host")
	case u.RawQuery != "" || u.Fragment != "":
		return bad("the server's URL must end with its path")
	}
	u.Path = strings.TrimSuffix(strings.TrimRight(u.Path, "/"), "/admin/training")
	u.RawPath = ""
	return strings.TrimRight(u.String(), "/"), nil
}

// InTheClear reports whether what is sent to the URL can be read on the way: plain HTTP to another machine.
func InTheClear(server string) bool {
	u, err := url.Parse(server)
	if err != nil || u.Scheme != "http" || u.Hostname() == "localhost" {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip == nil || !ip.IsLoopback()
}
