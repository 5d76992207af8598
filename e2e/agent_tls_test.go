package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// authority makes an authority that nobody knows and a certificate of its for 127.0.0.1 and behindProxy, and writes ca.pem,
// cert.pem and key.pem into the folder.
func authority(t *testing.T, dir string) *x509.CertPool {
	t.Helper()
	issue := func(template, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey) {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		if parent == nil {
			parent, signer = template, k
		}
		der, err := x509.CreateCertificate(rand.Reader, template, parent, &k.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return c, k
	}
	ca, caKey := issue(&x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "The university's own"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}, nil, nil)
	cert, certKey := issue(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "annotate"}, DNSNames: []string{behindProxy}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, ca, caKey)
	der, err := x509.MarshalECPrivateKey(certKey)
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.Raw})))
	write(t, dir, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})))
	write(t, dir, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	pool := x509.NewCertPool()
	pool.AddCert(ca)
	return pool
}

// T41: a server whose certificate is of an authority of its own is refused with what to do, and trusted with --ca.
func TestAgentTrustsAnAuthority(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	certs := t.TempDir()
	pool := authority(t, certs)
	s := start(t, dir, "--tls-cert", filepath.Join(certs, "cert.pem"), "--tls-key", filepath.Join(certs, "key.pem"))
	if !strings.HasPrefix(s.URL, "https://") {
		t.Fatalf("the server is at %s", s.URL)
	}
	s.http = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	for name, program := range agentPrograms(t) {
		agent := func(env []string, args ...string) *agentProgram {
			all := append(program[1:len(program):len(program)], "--server", s.URL, "--backend", workstation, "--once", "--workdir", t.TempDir(), "--python", python(t))
			cmd := exec.Command(program[0], append(all, args...)...)
			cmd.Env = append(os.Environ(), env...)
			return launch(t, token, cmd)
		}
		a := agent(nil)
		a.leaves(1)
		if !strings.Contains(a.said(), "certificate signed by unknown authority: pass --ca FILE") {
			t.Errorf("%s said of an unknown authority:\n%s", name, a.said())
		}
		ca := filepath.Join(certs, "ca.pem")
		for _, trusting := range []struct{ env, args []string }{{nil, []string{"--ca", ca}}, {[]string{"SSL_CERT_FILE=" + ca}, nil}} {
			id := s.agentTextRun(0)
			a := agent(trusting.env, trusting.args...)
			s.finished(id, "success")
			a.leaves(0)
		}
	}
}
