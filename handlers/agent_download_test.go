package handlers_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"potato/handlers"
	"potato/runners/agents"
)

// The agent's program is for everyone, and its checksum is beside it. A build without it says so.
func TestAgentDownload(t *testing.T) {
	s := serve(t, handlers.Options{AdminKey: goodKey})
	const path = "/api/training/agent/"
	d := s.get(path+"plan9/mips", noKey).refused(t, 404, "no_agent_here")
	if d.Hint == "" {
		t.Errorf("got %+v, want what to do", d)
	}
	s.get(path+"plan9/mips.sha256", noKey).refused(t, 404, "no_agent_here")
	s.get(path+"linux/amd-64", noKey).refused(t, 422, "invalid_request")
	if a := s.get(path+"..%2f/agents", noKey); a.StatusCode < 400 {
		t.Errorf("got %d", a.StatusCode)
	}
	if len(agents.Platforms()) == 0 {
		for _, p := range []string{"linux/amd64", "Linux/x86_64", "darwin/arm64"} {
			if d := s.get(path+p, noKey).refused(t, 404, "no_agent_here"); !strings.Contains(d.Detail, "carries no agents") {
				t.Errorf("got %q", d.Detail)
			}
		}
		return
	}
	for _, p := range agents.Platforms() {
		a := s.get(path+p.String(), noKey).ok(t, 200)
		sum := sha256.Sum256([]byte(a.text))
		if a.Header.Get("Repr-Digest") != digestOf([]byte(a.text)) || a.ContentLength != int64(len(a.text)) || len(a.text) < 1<<20 {
			t.Errorf("%s: %d bytes, %v", p, len(a.text), a.Header)
		}
		line := s.get(path+p.String()+".sha256", noKey).ok(t, 200)
		if line.text != hex.EncodeToString(sum[:])+"  potato-agent\n" {
			t.Errorf("%s: %q", p, line.text)
		}
	}
	want := s.get(path+"linux/amd64", noKey).text
	if got := s.get(path+"Linux/x86_64", noKey).ok(t, 200).text; got != want {
		t.Error("uname's words name another program")
	}
}
