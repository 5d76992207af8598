package trainers

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"potato/api"
)

// CheckDir refuses a study's trainers_dir whose files somebody else could have put there: what lies in it is run with
// the server's rights. It may not be below the annotation output, which annotators' data is written to, nor writable by
// others, it or its files or a folder above it.
func CheckDir(dir, outputDir string) error {
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return refuse("trainers_dir %s does not exist", dir)
	}
	if err != nil {
		return refuse("trainers_dir %s cannot be read: %v", dir, errors.Unwrap(err))
	}
	entries, err := os.ReadDir(real)
	if err != nil {
		return refuse("trainers_dir %s cannot be read: %v", dir, errors.Unwrap(err))
	}
	if below(real, outputDir) {
		return refuse("trainers_dir %s is below the annotation output, where data is written and no code may lie", dir).
			WithHint("keep trainers in a folder of their own")
	}
	for folder := real; ; folder = filepath.Dir(folder) {
		if err := notWritable(folder, folder != real); err != nil {
			return err
		}
		if folder == filepath.Dir(folder) {
			break
		}
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".py") {
			continue
		}
		file, err := filepath.EvalSymlinks(filepath.Join(real, entry.Name()))
		if err != nil {
			continue // a link to nowhere is no trainer
		}
		if below(file, outputDir) {
			return refuse("%s of trainers_dir lies below the annotation output", entry.Name()).WithHint("keep trainers in a folder of their own")
		}
		if err := notWritable(file, false); err != nil {
			return err
		}
	}
	return nil
}

// notWritable refuses what others may write. A folder above that is sticky, as /tmp is, lets nobody replace what is not
// theirs.
func notWritable(path string, above bool) error {
	about, err := os.Stat(path)
	if err != nil {
		return refuse("%s cannot be read: %v", path, errors.Unwrap(err))
	}
	if about.Mode().Perm()&0o002 == 0 || above && about.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	return refuse("%s can be written by every user of this machine, so its code is not run", path).WithHint("chmod o-w %s", path)
}

func below(path, folder string) bool {
	if folder == "" {
		return false
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		return false
	}
	if real, err := filepath.EvalSymlinks(folder); err == nil {
		folder = real
	}
	rel, err := filepath.Rel(folder, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func refuse(format string, args ...any) *api.Error {
	return api.Invalidf("trainers_dir", format, args...)
}

// EachStudyFile calls fn for the Python files of a study's trainers_dir, which are what travels to other machines; no
// folder has none. Whether the folder may be trusted is CheckDir's to say.
func EachStudyFile(dir string, fn func(name string, content []byte) error) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".py") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return err
		}
		if err := fn(entry.Name(), content); err != nil {
			return err
		}
	}
	return nil
}
