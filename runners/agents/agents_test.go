package agents

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"

	"potato/api"
)

func TestFind(t *testing.T) {
	program := bytes.Repeat([]byte("program "), 100_000)
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := z.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	here := fstest.MapFS{"potato-agent-linux-amd64.zst": {Data: packed.Bytes()}, "agents.go": {Data: []byte("package agents")}}
	got, err := find(here, PlatformOf("Linux", "x86_64"))
	sum := sha256.Sum256(program)
	if err != nil || got.Size != int64(len(program)) || got.SHA256 != hex.EncodeToString(sum[:]) {
		t.Fatalf("got %+v, %v", got, err)
	}
	r, err := open(here, got.packed)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || !bytes.Equal(text, program) {
		t.Errorf("got %d bytes, %v", len(text), err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range []Platform{{"plan9", "mips"}, {"..", "agents.go"}, {"", ""}} {
		_, err := find(here, p)
		if e := api.AsError(err); e.Code != "no_agent_here" || !strings.Contains(e.Hint, "linux/amd64") {
			t.Errorf("%s: %v (%s)", p, err, e.Hint)
		}
	}
	_, err = find(fstest.MapFS{}, Platform{"linux", "amd64"})
	if e := api.AsError(err); e.Code != "no_agent_here" || !strings.Contains(e.Hint, "make agents") {
		t.Errorf("without any: %v (%s)", err, e.Hint)
	}
}
