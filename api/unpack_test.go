package api_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"potato/agent/agenttest"
	"potato/api"
)

var generous = api.UnpackLimits{Bytes: 4 << 20, Entries: 1000}

func file(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 3} }

// Hostile archives write nothing outside their folder, and nothing in it either.
func TestUnpackRefuses(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	if err := os.Mkdir(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	zeros := strings.Repeat("\x00", 1<<20)
	for name, archive := range map[string][]byte{
		"an absolute path":       agenttest.Archive(t, filepath.Join(outside, "a"), "abc"),
		"dot dot":                agenttest.Archive(t, "../outside/a", "abc"),
		"dot dot inside":         agenttest.Archive(t, "x/../../outside/a", "abc"),
		"dot dot that stays":     agenttest.Archive(t, "x/../a", "abc"),
		"no name":                agenttest.Archive(t, "", "abc"),
		"a dot":                  agenttest.Archive(t, ".", "abc"),
		"a very deep name":       agenttest.Archive(t, strings.Repeat("d/", 30)+"a", "abc"),
		"a very long name":       agenttest.Archive(t, strings.Repeat("n", 2000), "abc"),
		"a name twice":           agenttest.Archive(t, "a", "abc", "a", "def"),
		"a name twice, dotted":   agenttest.Archive(t, "a", "abc", "./a", "def"),
		"a file as a folder":     agenttest.Archive(t, "a", "abc", "a/b", "def"),
		"a folder as a file":     agenttest.Archive(t, "a/b", "abc", "a", "def"),
		"a symbolic link":        agenttest.ArchiveOf(t, []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: outside}, file("l/a")}, []string{"", "abc"}),
		"a link to a file":       agenttest.ArchiveOf(t, []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../outside/a"}}, nil),
		"a hard link":            agenttest.ArchiveOf(t, []tar.Header{{Name: "l", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}}, nil),
		"a hard link to itself":  agenttest.ArchiveOf(t, []tar.Header{file("a"), {Name: "l", Typeflag: tar.TypeLink, Linkname: "a"}}, []string{"abc"}),
		"a character device":     agenttest.ArchiveOf(t, []tar.Header{{Name: "zero", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 5}}, nil),
		"a block device":         agenttest.ArchiveOf(t, []tar.Header{{Name: "sda", Typeflag: tar.TypeBlock, Devmajor: 8}}, nil),
		"a pipe":                 agenttest.ArchiveOf(t, []tar.Header{{Name: "pipe", Typeflag: tar.TypeFifo}}, nil),
		"a bomb in one file":     agenttest.Archive(t, "a", strings.Repeat(zeros, 5)),
		"a bomb of many files":   agenttest.Archive(t, many(1001, "")...),
		"a bomb in many files":   agenttest.Archive(t, many(6, zeros)...),
		"a bomb behind the end":  slices.Concat(agenttest.Archive(t, "a", "abc"), agenttest.Archive(t, many(6, zeros)...)),
		"half an archive":        half(agenttest.Archive(t, "a", agenttest.Noise(100_000, 1))),
		"a wrong checksum":       broken(agenttest.Archive(t, "a", agenttest.Noise(100_000, 1))),
		"no archive":             []byte("<html>"),
		"nothing":                nil,
		"bytes behind the end":   append(agenttest.Archive(t, "a", "abc"), "more"...),
		"good files, then a bad": agenttest.Archive(t, "a", "abc", "b/c", "abc", "/etc/potato", "abc"),
	} {
		t.Run(name, func(t *testing.T) {
			err := api.Unpack(t.Context(), bytes.NewReader(archive), filepath.Join(dir, "bundle"), generous)
			if !api.HasCode(err, "bad_bundle") {
				t.Errorf("Unpack: %v, want bad_bundle", err)
			}
			only(t, dir, "outside")
			only(t, outside)
		})
	}
}

func many(n int, content string) (pairs []string) {
	for i := range n {
		pairs = append(pairs, "f"+strconv.Itoa(i), content)
	}
	return pairs
}

func half(b []byte) []byte { return b[:len(b)/2] }

func broken(b []byte) []byte {
	b = bytes.Clone(b)
	b[len(b)-5] ^= 1
	return b
}

func only(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		t.Errorf("%s has %v, want %v", dir, got, names)
	}
}

func TestUnpackTakesPlainArchives(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bundle")
	archive := agenttest.ArchiveOf(t, []tar.Header{
		{Name: "./", Typeflag: tar.TypeDir, Mode: 0o777}, {Name: "media/", Typeflag: tar.TypeDir, Mode: 0o777}, {Name: "media", Typeflag: tar.TypeDir},
		{Name: "./media/ünï..cödé.png", Typeflag: tar.TypeReg, Mode: 0o4777, Size: 3}, {Name: "empty", Typeflag: tar.TypeReg},
	}, []string{"", "", "", "png", ""})
	if err := api.Unpack(t.Context(), bytes.NewReader(archive), dir, generous); err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]fs.FileMode{"": 0o700 | fs.ModeDir, "media": 0o700 | fs.ModeDir, "media/ünï..cödé.png": 0o600, "empty": 0o600} {
		st, err := os.Stat(filepath.Join(dir, path))
		if err != nil || st.Mode() != mode {
			t.Errorf("%q: %v, %v; want %v", path, st, err, mode)
		}
	}
	again := api.Unpack(t.Context(), bytes.NewReader(archive), dir, generous)
	if again == nil {
		t.Error("a folder that was there was replaced")
	}
}

func TestUnpackEndsWithItsContext(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	archive := io.MultiReader(bytes.NewReader(half(agenttest.Archive(t, "a", agenttest.Noise(1<<20, 1)))), cancelling{cancel})
	if err := api.Unpack(ctx, archive, filepath.Join(dir, "bundle"), generous); !errors.Is(err, context.Canceled) {
		t.Errorf("Unpack: %v", err)
	}
	only(t, dir)
}

type cancelling struct{ cancel context.CancelFunc }

func (c cancelling) Read(p []byte) (int, error) {
	c.cancel()
	return len(p), nil
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte("none"))
	f.Add(agenttest.Archive(f, "manifest.json", "{}", "media/a", "abc"))
	f.Add(agenttest.Archive(f, "../outside", "abc"))
	f.Add(agenttest.ArchiveOf(f, []tar.Header{{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, file("l/a")}, []string{"", "abc"}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		err := api.Unpack(t.Context(), bytes.NewReader(archive), filepath.Join(dir, "bundle"), api.UnpackLimits{Bytes: 1 << 20, Entries: 50})
		if err != nil {
			only(t, dir)
			return
		}
		only(t, dir, "bundle")
		walked := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && !d.Type().IsRegular() {
				t.Errorf("%s is neither a file nor a folder", path)
			}
			return err
		})
		if walked != nil {
			t.Error(walked)
		}
	})
}

// FuzzUnpackTar gets past gzip, whose checksum most changes break.
func FuzzUnpackTar(f *testing.F) {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, h := range []tar.Header{file("manifest.json"), file("media/a"), {Name: "l", Typeflag: tar.TypeSymlink, Linkname: "../x"}} {
		if err := w.WriteHeader(&h); err != nil {
			f.Fatal(err)
		}
		if h.Size > 0 {
			_, _ = w.Write([]byte("abc"))
		}
	}
	f.Add(buf.Bytes())
	f.Fuzz(func(t *testing.T, archive []byte) {
		dir := t.TempDir()
		if err := api.Unpack(t.Context(), packed(t, archive), filepath.Join(dir, "bundle"), api.UnpackLimits{Bytes: 1 << 20, Entries: 50}); err != nil {
			only(t, dir)
			return
		}
		only(t, dir, "bundle")
	})
}
