// Command packagents packs the agent's programs for other machines, which the server carries: packagents FROM TO packs
// every potato-agent-OS-ARCH in the folder FROM into TO and removes what is there of others. A program that is too large
// to be sent to a host is refused.
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/klauspost/compress/zstd"
)

const (
	prefix  = "potato-agent-"
	suffix  = ".zst"
	largest = 12 << 20 // bytes of a program
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: packagents FROM TO")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "packagents:", err)
		os.Exit(1)
	}
}

func run(from, to string) error {
	programs, err := filepath.Glob(filepath.Join(from, prefix+"*"))
	if err != nil {
		return err
	}
	if len(programs) == 0 {
		return fmt.Errorf("there is no %s* in %s", prefix, from)
	}
	var packed []string
	for _, program := range programs {
		path := filepath.Join(to, filepath.Base(program)+suffix)
		if err := pack(program, path); err != nil {
			return err
		}
		packed = append(packed, path)
	}
	old, err := filepath.Glob(filepath.Join(to, prefix+"*"+suffix))
	if err != nil {
		return err
	}
	for _, path := range old {
		if !slices.Contains(packed, path) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// pack writes the program's packed form unless it is there already.
func pack(program, path string) error {
	st, err := os.Stat(program)
	if err != nil {
		return err
	}
	if st.Size() > largest {
		return fmt.Errorf("%s has %d bytes, more than %d", program, st.Size(), largest)
	}
	if done, err := os.Stat(path); err == nil && done.ModTime().After(st.ModTime()) {
		return nil
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", z.EncodeAll(content, nil), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
