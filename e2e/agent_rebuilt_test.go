package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// rebuild writes the run's packed bundle anew, as another build would: the same files, one more, and so another digest and
// other bytes throughout. It returns the size.
func (s *server) rebuild(id, name, content string) int64 {
	folder := filepath.Join(s.dir, "annotation_output", "training", "runs", id)
	path := filepath.Join(folder, "bundle.tar.gz")
	old, err := os.Open(path)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	defer old.Close()
	unpacked, err := gzip.NewReader(old)
	if err != nil {
		s.t.Error(err)
		return 0
	}
	var packed bytes.Buffer
	zip, _ := gzip.NewWriterLevel(&packed, gzip.HuffmanOnly)
	to, from := tar.NewWriter(zip), tar.NewReader(unpacked)
	err = to.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content))})
	if err == nil {
		_, err = io.WriteString(to, content)
	}
	for err == nil {
		var h *tar.Header
		if h, err = from.Next(); err == nil {
			err = to.WriteHeader(h)
		}
		if err == nil {
			_, err = io.Copy(to, from)
		}
	}
	if !errors.Is(err, io.EOF) {
		s.t.Error(err)
		return 0
	}
	_, _ = to.Close(), zip.Close()
	sum := sha256.Sum256(packed.Bytes())
	sums, _ := filepath.Glob(path + ".*")
	if len(sums) != 1 {
		s.t.Errorf("beside the bundle lie %v", sums)
		return 0
	}
	for file, text := range map[string][]byte{path: packed.Bytes(), sums[0]: []byte(hex.EncodeToString(sum[:]) + "  bundle.tar.gz\n")} {
		if err := os.WriteFile(file+".new", text, 0o600); err != nil {
			s.t.Error(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			s.t.Error(err)
		}
	}
	return int64(packed.Len())
}

// T43: a bundle that is built anew between two ranges of its download comes anew and whole: nothing of the first is in it.
func TestBundleIsRebuiltBetweenTwoRanges(t *testing.T) {
	t.Parallel()
	s, token := cutStudy(t)
	limit := bundleMB() << 20 / 5
	c := cutting(t, s, 1, limit)
	id := s.agentTextRun(0)
	var size int64
	c.between = func() { size = s.rebuild(id, "built-again", "yes") }
	workdir := t.TempDir()
	a := agentHere(t, c.address, token, workdir, "--once", "--keep")
	s.ends(id, "success", 3*time.Minute)
	a.leaves(0)
	made, passed := c.counts()
	if made != 1 || size == 0 {
		t.Fatalf("%d cuts were made, the second bundle has %d bytes", made, size)
	}
	if passed < limit+size || passed > limit+size+1<<20 {
		t.Errorf("%d bytes were carried, want %d of the first bundle and all %d of the second", passed, limit, size)
	}
	bundle := filepath.Join(workdir, "jobs", id, "bundle")
	if text, err := os.ReadFile(filepath.Join(bundle, "built-again")); string(text) != "yes" {
		t.Errorf("the agent did not train from the second bundle: %q, %v", text, err)
	}
	for _, name := range []string{"manifest.json", "train.jsonl", "unlabeled.jsonl"} {
		there, err := os.ReadFile(filepath.Join(bundle, name))
		here, _ := os.ReadFile(filepath.Join(s.dir, "annotation_output", "training", "runs", id, "bundle", name))
		if err != nil || len(here) == 0 || !bytes.Equal(there, here) {
			t.Errorf("%s has %d bytes there and %d here (%v)", name, len(there), len(here), err)
		}
	}
	if log := strings.Join(s.agentLog(id), "\n"); !strings.Contains(log, "trying again what=bundle: the connection was cut after ") {
		t.Errorf("the agent's log is\n%s", log)
	}
}
