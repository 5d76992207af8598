package agenttest

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"math/rand/v2"
	"testing"
)

// Archive is a tar.gz of the files, in the order of the pairs name, content.
func Archive(tb testing.TB, pairs ...string) []byte {
	tb.Helper()
	var entries []tar.Header
	var contents []string
	for i := 0; i+1 < len(pairs); i += 2 {
		entries = append(entries, tar.Header{Name: pairs[i], Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(pairs[i+1]))})
		contents = append(contents, pairs[i+1])
	}
	return ArchiveOf(tb, entries, contents)
}

// ArchiveOf is a tar.gz of any entries, hostile ones too. Contents may be shorter than entries.
func ArchiveOf(tb testing.TB, entries []tar.Header, contents []string) []byte {
	tb.Helper()
	var buf bytes.Buffer
	packed := gzip.NewWriter(&buf)
	w := tar.NewWriter(packed)
	for i := range entries {
		if err := w.WriteHeader(&entries[i]); err != nil {
			tb.Fatal(err)
		}
		if i < len(contents) {
			if _, err := w.Write([]byte(contents[i])); err != nil {
				tb.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	if err := packed.Close(); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

// Noise is n bytes that no packer makes smaller, the same for the same seed.
func Noise(n int, seed uint64) string {
	b := make([]byte, n)
	var key [32]byte
	key[0], key[1] = byte(seed), byte(seed>>8)
	_, _ = rand.NewChaCha8(key).Read(b) // never fails
	return string(b)
}
