package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

// bench is what every measurement needs: where both products are and a folder to work in.
type bench struct {
	potato   string // this server's program
	peer     string // the published tool's virtual environment
	dir      string
	repeats  int
	progress *log.Logger
	n        int // folders handed out
}

// open finds both products and makes the folder.
func (b *bench) open() error {
	if b.repeats < 1 {
		return fmt.Errorf("--repeats is %d; it has to be at least 1", b.repeats)
	}
	var err error
	if b.potato, err = filepath.Abs(b.potato); err != nil {
		return err
	}
	if b.peer, err = filepath.Abs(b.peer); err != nil {
		return err
	}
	for program, target := range map[string]string{b.potato: "make build", b.peerProgram(): "make bench"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%s is not there; `%s` makes it", program, target)
		}
	}
	b.dir, err = os.MkdirTemp("", "potato-bench-")
	return err
}

func (b *bench) peerProgram() string { return filepath.Join(b.peer, "bin", "potato") }

// python is the interpreter that trains on both sides, so that both import the same scikit-learn.
func (b *bench) python() string { return filepath.Join(b.peer, "bin", "python") }

// folder returns the path of a new folder of the given name.
func (b *bench) folder(name string) string {
	b.n++
	return filepath.Join(b.dir, fmt.Sprintf("%02d-%s", b.n, name))
}

// say reports a sample to whoever watches.
func (b *bench) say(format string, args ...any) { b.progress.Printf("  "+format, args...) }
