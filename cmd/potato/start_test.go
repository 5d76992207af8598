package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"potato/project"
)

// The scripts in testdata/start keep servers in the background and talk to them.
func TestStart(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/start",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"up": up, "answers": answersStatus, "exits": exits, "certificate": makeCertificate,
		},
	})
}

// up NAME LOCK waits until the server that holds the lock answers, and puts its address into NAME and its port into
// NAME_PORT.
func up(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: up NAME LOCK")
	}
	last := "no lock"
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(ts.MkAbs(args[1]))
		var holder struct {
			URL string `json:"url"`
		}
		if err != nil || json.Unmarshal(text, &holder) != nil || holder.URL == "" {
			continue
		}
		at, err := url.Parse(holder.URL)
		ts.Check(err)
		base := at.Scheme + "://" + at.Host
		if status, _, err := fetch(base+"/healthz", nil); err != nil || status != 200 {
			last = fmt.Sprint(status, err)
			continue
		}
		ts.Setenv(args[0], base)
		ts.Setenv(args[0]+"_PORT", at.Port())
		return
	}
	ts.Fatalf("no server answers: %s", last)
}

// answers STATUS URL [HEADER=VALUE…] asks and wants the status.
func answersStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: answers STATUS URL [HEADER=VALUE…]")
	}
	status, text, err := fetch(args[1], args[2:])
	ts.Check(err)
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("status %d, want %s: %s", status, args[0], text)
	}
}

func fetch(address string, headers []string) (status int, text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", err
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, "=")
		req.Header.Set(name, value)
		if name == "Host" {
			req.Host = value
		}
	}
	// The certificate is one that the script has just made.
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b := make([]byte, 500)
	n, _ := resp.Body.Read(b)
	return resp.StatusCode, string(b[:n]), nil
}

// certificate CERT KEY makes a certificate for this machine.
func makeCertificate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: certificate CERT KEY")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	cert, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	ts.Check(err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	ts.Check(err)
	for i, block := range []*pem.Block{{Type: "CERTIFICATE", Bytes: cert}, {Type: "PRIVATE KEY", Bytes: der}} {
		ts.Check(os.WriteFile(ts.MkAbs(args[i]), pem.EncodeToMemory(block), 0o600))
	}
}

func TestListenAddress(t *testing.T) {
	const good = "a-key-of-more-than-sixteen-characters"
	for _, c := range []struct {
		key        project.Secret
		debug      bool
		host, says string
	}{
		{good, false, "", ""},
		{good, true, "127.0.0.1", "debug is on"},
		{"", false, "127.0.0.1", "admin_api_key is missing"},
		{"change-me", false, "127.0.0.1", "admin_api_key is the example's change-me"},
		{"short", false, "127.0.0.1", "admin_api_key has fewer than 16 characters"},
		{"${POTATO_ADMIN_KEY}", false, "127.0.0.1", "admin_api_key names an environment variable that is not set"},
	} {
		host, why := listenAddress(&project.Config{AdminAPIKey: c.key}, c.debug)
		if host != c.host || !strings.HasPrefix(why, c.says) || (why == "") != (c.says == "") {
			t.Errorf("debug %v: got %q because %q, want %q because %q", c.debug, host, why, c.host, c.says)
		}
		if strings.Contains(why, "short") {
			t.Errorf("the reason has the key: %s", why)
		}
	}
}

func TestPrefixes(t *testing.T) {
	got, err := prefixes([]string{"127.0.0.1", "10.1.2.3/8", "::1"})
	if err != nil || fmt.Sprint(got) != "[127.0.0.1/32 10.0.0.0/8 ::1/128]" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := prefixes([]string{"proxy.example.org"}); err == nil {
		t.Error("a name passed as a network")
	}
}
