package api

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Codes of a client's errors that no server of ours has sent.
const (
	codeUnreachable = "server_unreachable" // no answer
	codeCertificate = "certificate"        // the server's certificate was not accepted
	codeProxy       = "proxy_refused"      // the proxy of HTTPS_PROXY or HTTP_PROXY did not let us through
	codeNotServer   = "not_the_server"     // something answered, and it is no server of ours
	codeProxyLimit  = "proxy_limit"        // something before the server refused a request for its size
)

var (
	errNoAnswer = errors.New("no answer in time")
	errStalled  = errors.New("nothing moved for too long")
)

// Misdirected reports whether the error says that whoever answers at the URL is not the server, or is not trusted: it
// will not change by itself, while a server that is only away comes back.
func Misdirected(err error) bool {
	return HasCode(err, codeCertificate) || HasCode(err, codeProxy) || HasCode(err, codeNotServer)
}

// refusalCause keeps what a caller may want to know of an answer that was no success.
type refusalCause struct {
	status int
	after  time.Duration // Retry-After
	ours   bool          // a problem document with a code
}

func (r *refusalCause) Error() string { return "HTTP status " + strconv.Itoa(r.status) }

// RetryAfter is how long the server wants to be left alone; 0 when it did not say.
func RetryAfter(err error) time.Duration {
	var r *refusalCause
	if errors.As(err, &r) {
		return r.after
	}
	return 0
}

func statusOf(err error) int {
	var r *refusalCause
	if errors.As(err, &r) {
		return r.status
	}
	return 0
}

var kindOfStatus = map[int]Kind{
	http.StatusUnauthorized:          KindUnauthenticated,
	http.StatusForbidden:             KindDenied,
	http.StatusNotFound:              KindNotFound,
	http.StatusConflict:              KindConflict,
	http.StatusGone:                  KindGone,
	http.StatusRequestEntityTooLarge: KindTooLarge,
	http.StatusTooManyRequests:       KindTooMany,
	http.StatusServiceUnavailable:    KindUnavailable,
	http.StatusRequestTimeout:        KindUnavailable,
	499:                              KindUnavailable, // our server took us for gone
}

// refusal turns an answer that is no success into an error. What a server of ours says is taken over; of any other
// answer only the status is told, for its text could be anything.
func (c *Client) refusal(resp *http.Response) error {
	cause := &refusalCause{status: resp.StatusCode, after: retryAfter(resp.Header)}
	var p struct {
		Detail, Code, Hint string
		Errors             []Problem
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind == typeProblem {
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxProblem))
		cause.ours = err == nil && json.Unmarshal(b, &p) == nil && p.Code != ""
	}
	if !cause.ours {
		return c.stranger(resp, cause)
	}
	e := &Error{Code: p.Code, Message: c.clean(cmp.Or(p.Detail, p.Code)), Hint: c.clean(p.Hint), cause: cause}
	for _, problem := range p.Errors {
		e.Message += "; " + c.clean(problem.Path+": "+problem.Message)
	}
	switch kind, known := kindOfStatus[resp.StatusCode]; {
	case known:
		e.Kind = kind
	case resp.StatusCode >= 500:
		e.Kind = KindInternal
	default:
		e.Kind = KindInvalid
	}
	return e
}

// stranger is an answer that is not of our server but of something before it, such as a proxy. It says nothing about
// the run, so it is no reason to give it up.
func (c *Client) stranger(resp *http.Response, cause *refusalCause) error {
	status := strconv.Itoa(resp.StatusCode) + " " + http.StatusText(resp.StatusCode)
	switch code := resp.StatusCode; {
	case code == http.StatusRequestEntityTooLarge:
		return TooLargef(codeProxyLimit, "something between this machine and %s refuses requests of this size (413)", c.host()).WithCause(cause)
	case code == http.StatusProxyAuthRequired:
		return proxyAuth("").WithCause(cause)
	case code >= 300 && code < 400 && code != http.StatusNotModified:
		to := "another address"
		if u, err := resp.Location(); err == nil {
			to = u.Scheme + "://" + u.Host
		}
		return notTheServer(fmt.Sprintf("it sends us on to %s", to)).WithHint("give the server's own address with --server").WithCause(cause)
	case code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		return Unavailablef(codeUnreachable, "%s is away: something before it answers %s", c.host(), status).WithCause(cause)
	case code >= 500:
		return Unavailablef(codeUnreachable, "%s answers %s", c.host(), status).WithCause(cause)
	}
	return notTheServer("it answers " + status).WithCause(cause)
}

func notTheServer(why string) *Error {
	return Unavailablef(codeNotServer, "what answers at the server's URL is no potato training server: %s", why).
		WithHint("check --server: it is the address of the training page without /admin/training")
}

func proxyAuth(proxy string) *Error {
	return Unavailablef(codeProxy, "the proxy %swants a user name and a password (407)", spaced(proxy)).
		WithHint("put them into HTTPS_PROXY as http://USER:PASSWORD@HOST:PORT, or name the server in NO_PROXY when it can be reached without the proxy")
}

// explain says why there was no answer. The text of Go's own errors holds the URL and nothing secret, and is told from
// its last part on.
func (c *Client) explain(ctx context.Context, err error) error {
	var known *Error
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errNoAnswer):
		return Unavailablef(codeUnreachable, "%s did not answer in time", c.host()).WithCause(err)
	case errors.Is(cause, errStalled):
		return Unavailablef(codeUnreachable, "the connection to %s moved nothing for %.0f s", c.host(), orElse(c.StallTimeout, defaultStall).Seconds()).WithCause(err)
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &known): // of our own hooks in the transport
		return known
	}
	if said := certificateError(err); said != "" {
		return Unavailablef(codeCertificate, "%s is not trusted: %s", c.host(), said).WithCause(err).
			WithHint("FILE holds the certificate of the authority that signed the server's, as PEM; SSL_CERT_FILE works too")
	}
	var dns *net.DNSError
	if errors.As(err, &dns) && dns.IsNotFound {
		return Unavailablef(codeUnreachable, "%s cannot be reached: there is no host %s", c.host(), dns.Name).WithCause(err)
	}
	return Unavailablef(codeUnreachable, "%s cannot be reached: %v", c.host(), rootOf(err)).WithCause(err)
}

func certificateError(err error) string {
	var unknown x509.UnknownAuthorityError
	var wrongHost x509.HostnameError
	var invalid x509.CertificateInvalidError
	var unverified *tls.CertificateVerificationError
	switch {
	case errors.As(err, &unknown):
		return "certificate signed by unknown authority: pass --ca FILE"
	case errors.As(err, &wrongHost), errors.As(err, &invalid):
		return rootOf(err).Error()
	case errors.As(err, &unverified):
		return unverified.Err.Error() + ": pass --ca FILE"
	}
	return ""
}

// rootOf drops what Go's HTTP client puts before the cause: the method and the whole URL.
func rootOf(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return err
}

// host names the server in messages.
func (c *Client) host() string {
	if u, err := url.Parse(c.BaseURL); err == nil && u.Host != "" {
		return u.Scheme + "://" + u.Host
	}
	return "the server"
}

// clean makes the other side's text fit for a terminal and takes our token out, should anybody have put it there.
func (c *Client) clean(s string) string {
	if c.Token != "" {
		s = strings.ReplaceAll(s, c.Token, "…")
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// retryAfter reads the header's two forms.
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if s, err := strconv.Atoi(v); err == nil && s > 0 {
		return min(time.Duration(s), 3600) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(max(time.Until(t), time.Second), time.Hour)
	}
	return 0
}

func spaced(s string) string {
	if s == "" {
		return ""
	}
	return s + " "
}
