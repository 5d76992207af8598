package hosts

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// keys are what the account can prove itself with: the keys of a running ssh-agent, then the files that the configuration
// names. Nothing asks for a passphrase.
type keys struct {
	all       []ssh.Signer
	encrypted []string // files with a passphrase whose key no ssh-agent has
	unread    []string // files that are no keys we can read, with the reason
	agent     net.Conn
}

// agentTime bounds what an ssh-agent may take: a forwarded one may be gone.
const agentTime = 3 * time.Second

func findKeys(p place) (*keys, error) {
	k := &keys{}
	inAgent := k.ask(p)
	public := map[string]bool{} // of the files, by their wire form
	var fromFiles []ssh.Signer
	for _, name := range p.settings["identityfile"] {
		if strings.EqualFold(name, "none") {
			continue
		}
		path := p.file(name)
		private, err := os.ReadFile(path)
		if err != nil {
			k.note(path, err)
			if key := publicKey(path + ".pub"); key != nil {
				public[string(key.Marshal())] = true // its private half is in the agent
			} else if key := publicKey(path); key != nil {
				public[string(key.Marshal())] = true
			}
			continue
		}
		signer, err := ssh.ParsePrivateKey(private)
		var locked *ssh.PassphraseMissingError
		switch {
		case errors.As(err, &locked):
			key := locked.PublicKey
			if key == nil {
				key = publicKey(path + ".pub")
			}
			if key == nil || !has(inAgent, key) {
				k.encrypted = append(k.encrypted, path)
			}
			if key != nil {
				public[string(key.Marshal())] = true
			}
		case err != nil:
			if key := publicKey(path); key != nil { // a public key alone says which of the agent's keys to use
				public[string(key.Marshal())] = true
				continue
			}
			k.note(path, err)
		default:
			public[string(signer.PublicKey().Marshal())] = true
			fromFiles = append(fromFiles, signer)
		}
	}
	only := p.settings.yes("identitiesonly")
	for _, s := range inAgent {
		if !only || public[string(plain(s.PublicKey()).Marshal())] {
			k.all = append(k.all, s)
		}
	}
	for _, s := range fromFiles {
		if !has(k.all, s.PublicKey()) {
			k.all = append(k.all, s)
		}
	}
	k.addCertificates(p)
	return k, nil
}

// note keeps why a file is of no use; that a default file is not there is nothing to mention.
func (k *keys) note(path string, err error) {
	if !errors.Is(err, os.ErrNotExist) {
		k.unread = append(k.unread, path)
	}
}

// ask gets the keys of the running ssh-agent, if there is one.
func (k *keys) ask(p place) []ssh.Signer {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if of := p.settings.first("identityagent"); of != "" {
		switch {
		case strings.EqualFold(of, "none"):
			socket = ""
		case of == "SSH_AUTH_SOCK":
		case strings.HasPrefix(of, "$"):
			socket = os.Getenv(strings.Trim(of[1:], "{}"))
		default:
			socket = p.file(of)
		}
	}
	if socket == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), agentTime)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil
	}
	_ = conn.SetDeadline(time.Now().Add(agentTime))
	signers, err := agent.NewClient(conn).Signers()
	if err != nil {
		_ = conn.Close()
		return nil
	}
	_ = conn.SetDeadline(time.Time{}) // it may ask its owner before it signs; the login has a limit of its own
	k.agent = conn
	return signers
}

// addCertificates puts the certificates that the configuration has for a key in front of it.
func (k *keys) addCertificates(p place) {
	var files []string
	for _, name := range p.settings["certificatefile"] {
		files = append(files, p.file(name))
	}
	for _, name := range p.settings["identityfile"] {
		files = append(files, p.file(name)+"-cert.pub")
	}
	var certified []ssh.Signer
	for _, file := range files {
		certificate, ok := publicKey(file).(*ssh.Certificate)
		if !ok {
			continue
		}
		for _, s := range k.all {
			if bytes.Equal(s.PublicKey().Marshal(), certificate.Key.Marshal()) {
				if with, err := ssh.NewCertSigner(certificate, s); err == nil {
					certified = append(certified, with)
				}
				break
			}
		}
	}
	k.all = append(certified, k.all...)
}

func publicKey(file string) ssh.PublicKey {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	key, _, _, _, err := ssh.ParseAuthorizedKey(text)
	if err != nil {
		return nil
	}
	return key
}

// plain is the key of a certificate.
func plain(key ssh.PublicKey) ssh.PublicKey {
	if c, ok := key.(*ssh.Certificate); ok {
		return c.Key
	}
	if a, ok := key.(*agent.Key); ok { // the wire form is the certificate's own there
		if parsed, err := ssh.ParsePublicKey(a.Marshal()); err == nil {
			if c, ok := parsed.(*ssh.Certificate); ok {
				return c.Key
			}
		}
	}
	return key
}

func has(signers []ssh.Signer, key ssh.PublicKey) bool {
	for _, s := range signers {
		if bytes.Equal(s.PublicKey().Marshal(), key.Marshal()) {
			return true
		}
	}
	return false
}

func (k *keys) signers() ([]ssh.Signer, error) { return k.all, nil }

func (k *keys) close() {
	if k.agent != nil {
		_ = k.agent.Close()
	}
}
