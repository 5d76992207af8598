package trainers

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sync"
)

//go:embed potato_trainers/*.py potato_trainers/builtin/*.py
var embedded embed.FS

const (
	root   = "potato_trainers"
	worker = "worker.py"
)

// Files is the Python package as files: what goes to a training machine, below the folder potato_trainers.
func Files() fs.FS { return embedded }

// Hash is the content address of the Python package: it changes with every byte of it and with nothing else.
var Hash = sync.OnceValue(func() string {
	sum := sha256.New()
	err := eachFile(func(name string, content []byte) error {
		_, err := fmt.Fprintf(sum, "%s\x00%d\x00%s", name, len(content), content)
		return err
	})
	if err != nil {
		panic(err) // embedded files are always readable
	}
	return hex.EncodeToString(sum.Sum(nil))[:32]
})

// Materialise writes the package into dir/HASH/ unless it is there, and returns the path of worker.py in it. The folder
// appears whole, by rename; files that went missing since are put back. Callers in several processes do not disturb
// each other.
func Materialise(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("write the trainers: %w", err)
	}
	home := filepath.Join(dir, Hash())
	if err := materialise(dir, home); err != nil {
		return "", fmt.Errorf("write the trainers: %w", err)
	}
	return filepath.Join(home, root, worker), nil
}

func materialise(dir, home string) error {
	if _, err := os.Stat(home); err == nil {
		return mend(home)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	partial, err := os.MkdirTemp(dir, ".trainers-*")
	if err != nil {
		return err
	}
	if err := mend(partial); err != nil {
		return errors.Join(err, os.RemoveAll(partial))
	}
	err = os.Rename(partial, home)
	if err == nil {
		return nil
	}
	if errors.Is(err, fs.ErrExist) { // another caller was faster
		err = mend(home)
	}
	return errors.Join(err, os.RemoveAll(partial))
}

// mend writes what is not in home as it should be, each file by rename.
func mend(home string) error {
	return eachFile(func(name string, content []byte) error {
		target := filepath.Join(home, filepath.FromSlash(name))
		if there, err := os.ReadFile(target); err == nil && bytes.Equal(there, content) {
			return nil
		}
		folder := filepath.Dir(target)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return err
		}
		return writeByRename(folder, target, content)
	})
}

func writeByRename(folder, target string, content []byte) error {
	f, err := os.CreateTemp(folder, ".partial-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), target)
}

// eachFile calls fn for every file of the package in the order of their names.
func eachFile(fn func(name string, content []byte) error) error {
	return fs.WalkDir(embedded, root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		return fn(path.Clean(name), content)
	})
}
