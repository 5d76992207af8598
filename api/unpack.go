package api

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// UnpackLimits bound what an archive may turn into, lest a small one fills the disk.
type UnpackLimits struct {
	Bytes   int64 // of the unpacked archive
	Entries int
}

const (
	maxEntries    = 1_000_000
	smallArchive  = 1 << 30 // an archive may grow to this much in any case
	largestGrowth = 100     // and beyond it to so many times its size; text rarely shrinks to a tenth
	maxDepth      = 20
)

// unpackFile unpacks an archive whose size is known.
func unpackFile(ctx context.Context, archive, dir string) error {
	f, err := os.Open(archive)
	if err != nil {
		return localFault(err)
	}
	defer f.Close() //nolint:errcheck // only read from
	st, err := f.Stat()
	if err != nil {
		return localFault(err)
	}
	limits := UnpackLimits{Bytes: max(smallArchive, min(st.Size(), math.MaxInt64/largestGrowth)*largestGrowth), Entries: maxEntries}
	return Unpack(ctx, f, dir, limits)
}

// Unpack writes the files of a tar.gz into the folder dir, which appears whole, by rename, or not at all. The archive may
// be anybody's: only plain files and folders are taken, and nothing is written outside of dir.
func Unpack(ctx context.Context, archive io.Reader, dir string, limits UnpackLimits) (err error) {
	partial, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".*")
	if err != nil {
		return localFault(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(partial))
		}
	}()
	root, err := os.OpenRoot(partial)
	if err != nil {
		return localFault(err)
	}
	defer root.Close() //nolint:errcheck // a folder, only used to open files in it
	packed, err := gzip.NewReader(readerFunc(func(p []byte) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return archive.Read(p)
	}))
	if err != nil {
		return damaged(ctx, err)
	}
	// The limit is on all that comes out of gzip, what follows the last file included.
	unpacked := &limited{r: packed, left: limits.Bytes}
	if err := unpackTar(ctx, tar.NewReader(unpacked), root, limits.Entries); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, unpacked); err != nil { // to gzip's checksum
		return damaged(ctx, err)
	}
	if err := os.Rename(partial, dir); err != nil {
		return localFault(err)
	}
	return nil
}

func unpackTar(ctx context.Context, archive *tar.Reader, root *os.Root, entries int) error {
	for ; ; entries-- {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return damaged(ctx, err)
		}
		if entries <= 0 {
			return badBundle("it has too many files")
		}
		name, err := entryName(head.Name)
		if err != nil {
			return err
		}
		switch head.Typeflag {
		case tar.TypeDir:
			if err := root.MkdirAll(name, 0o700); err != nil {
				return taken(name, err)
			}
		case tar.TypeReg:
			if err := writeEntry(ctx, archive, root, name); err != nil {
				return err
			}
		default:
			return badBundle("%q in it is neither a file nor a folder", head.Name)
		}
	}
}

// entryName refuses every name that is not plainly one below the folder.
func entryName(name string) (string, error) {
	clean := path.Clean(name)
	switch {
	case !filepath.IsLocal(name) || !filepath.IsLocal(filepath.FromSlash(name)),
		clean != strings.TrimPrefix(strings.TrimSuffix(name, "/"), "./") && clean != ".",
		strings.ContainsRune(name, 0), len(name) > 1024, strings.Count(clean, "/") >= maxDepth:
		return "", badBundle("%.200q is no name for a file in it", name)
	}
	return filepath.FromSlash(clean), nil
}

func writeEntry(ctx context.Context, content io.Reader, root *os.Root, name string) (err error) {
	if folder := filepath.Dir(name); folder != "." {
		if err := root.MkdirAll(folder, 0o700); err != nil {
			return taken(name, err)
		}
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return taken(name, err)
	}
	defer func() {
		if closed := f.Close(); err == nil && closed != nil {
			err = localFault(closed)
		}
	}()
	w := &written{w: f}
	_, err = io.Copy(w, content)
	switch {
	case w.err != nil:
		return localFault(w.err)
	case err != nil:
		return damaged(ctx, err)
	}
	return nil
}

// taken is a name that could not be used, most often since an earlier entry has it.
func taken(name string, err error) error {
	if errors.Is(err, fs.ErrExist) {
		return badBundle("%.200q is in it twice", name)
	}
	if e := localFault(err); HasCode(e, "disk_full") {
		return e
	}
	return badBundle("%.200q in it cannot be written: %v", name, err)
}

func badBundle(format string, args ...any) *Error {
	return Invalidf("bad_bundle", "The bundle cannot be unpacked: %s", fmt.Sprintf(format, args...))
}

var errTooMuch = errors.New("it unpacks to more than a bundle of its size may")

func damaged(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, errTooMuch) {
		return badBundle("%v", errTooMuch)
	}
	return badBundle("it is damaged: %v", err).WithCause(err)
}

// limited is a reader that fails beyond its limit, where io.LimitedReader would only end.
type limited struct {
	r    io.Reader
	left int64
}

func (l *limited) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}

// written keeps the writer's error apart from the reader's.
type written struct {
	w   io.Writer
	err error
}

func (w *written) Write(p []byte) (int, error) {
	n, err := w.w.Write(p)
	w.err = err
	return n, err
}

// readerFunc is a reader made of a function.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
