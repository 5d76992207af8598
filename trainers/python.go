package trainers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"potato/api"
)

// FindPython returns the path of an interpreter that is given as a path or as a name on the PATH of env; empty means
// python3. A refusal says which of the ways to be no interpreter it is.
func FindPython(python string, env []string) (string, error) {
	if python == "" {
		python = "python3"
	}
	if strings.ContainsRune(python, filepath.Separator) {
		return python, executable(python)
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if name != "PATH" {
			continue
		}
		for _, dir := range filepath.SplitList(value) {
			if path := filepath.Join(dir, python); filepath.IsAbs(path) && executable(path) == nil {
				return path, nil
			}
		}
	}
	return "", missing("%s was not found on this machine", python)
}

func executable(path string) error {
	about, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return missing("%s was not found on this machine", path).WithCause(err)
	case err != nil:
		return missing("%s cannot be reached on this machine: %v", path, errors.Unwrap(err)).WithCause(err)
	case about.IsDir():
		return missing("%s is a folder on this machine, not an interpreter", path)
	case about.Mode()&0o111 == 0:
		return missing("%s may not be executed on this machine", path)
	}
	return nil
}

func missing(format string, args ...any) *api.Error {
	return api.Unavailablef("python_missing", format, args...).
		WithHint("set `model_training.python` to an interpreter that exists")
}
