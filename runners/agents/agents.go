// Package agents carries the agent's program for other machines, packed: whoever runs one there needs nothing but what
// the server gives. `make agents` puts the programs here; a build without it carries none, and says so when asked.
package agents

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"potato/api"
)

// The pattern takes this file too, so that it matches something in a fresh clone.
//
//go:embed *
var files embed.FS

const (
	prefix = "potato-agent-"
	suffix = ".zst"
)

// Platform is an operating system and a processor, in Go's words.
type Platform struct{ OS, Arch string }

func (p Platform) String() string { return p.OS + "/" + p.Arch }

// PlatformOf reads a platform in Go's words or in those of uname: Linux and x86_64 are linux and amd64.
func PlatformOf(os, arch string) Platform {
	os, arch = strings.ToLower(os), strings.ToLower(arch)
	switch arch {
	case "x86_64":
		arch = "amd64"
	case "aarch64":
		arch = "arm64"
	}
	return Platform{os, arch}
}

// Program is an agent's program.
type Program struct {
	Platform Platform
	Size     int64
	SHA256   string // as hex
	packed   string
}

// Find finds the program for a platform. NotFound has code no_agent_here.
func Find(p Platform) (Program, error) { return find(files, p) }

// Platforms lists those that this build carries a program for.
func Platforms() []Platform { return platforms(files) }

func platforms(from fs.FS) []Platform {
	list := []Platform{}
	names, _ := fs.Glob(from, prefix+"*"+suffix) // the pattern is a good one
	for _, name := range names {
		os, arch, ok := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(name, prefix), suffix), "-")
		if ok {
			list = append(list, Platform{os, arch})
		}
	}
	return list
}

func find(from fs.FS, p Platform) (Program, error) {
	have := platforms(from)
	if !slices.Contains(have, p) {
		return Program{}, missing(p, have)
	}
	packed := prefix + p.OS + "-" + p.Arch + suffix
	measure, _ := measured.LoadOrStore(packed, sync.OnceValues(func() (Program, error) { return unpacked(from, p, packed) }))
	return measure.(func() (Program, error))()
}

// measured are the sizes and digests that were asked for: they take a moment to find out.
var measured sync.Map

func unpacked(from fs.FS, p Platform, packed string) (Program, error) {
	r, err := open(from, packed)
	if err != nil {
		return Program{}, err
	}
	defer r.Close() //nolint:errcheck // only read from
	h := sha256.New()
	n, err := io.Copy(h, r)
	return Program{Platform: p, Size: n, SHA256: hex.EncodeToString(h.Sum(nil)), packed: packed}, err
}

// Open reads the program.
func (p Program) Open() (io.ReadCloser, error) { return open(files, p.packed) }

func open(from fs.FS, packed string) (io.ReadCloser, error) {
	f, err := from.Open(packed)
	if err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	return z.IOReadCloser(), nil // the file is memory of this program
}

func missing(p Platform, have []Platform) error {
	if len(have) == 0 {
		return api.NotFoundf("no_agent_here", "This build of the server carries no agents").
			WithHint("build it with `make agents build`, or build the agent where it is to run: go build ./cmd/potato-agent")
	}
	names := make([]string, len(have))
	for i, h := range have {
		names[i] = h.String()
	}
	return api.NotFoundf("no_agent_here", "This server carries no agent for %s", p).
		WithHint("it carries those for %s", strings.Join(names, ", "))
}

// Hash is the content address of all programs that this build carries.
var Hash = sync.OnceValue(func() string {
	sum := sha256.New()
	for _, p := range Platforms() {
		packed, err := files.ReadFile(prefix + p.OS + "-" + p.Arch + suffix)
		if err != nil {
			panic(err) // embedded files are always readable
		}
		sum.Write([]byte(p.String()))
		sum.Write(packed)
	}
	return hex.EncodeToString(sum.Sum(nil))
})
