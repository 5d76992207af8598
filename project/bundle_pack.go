package project

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/gzip"
)

// PackBundle writes a bundle as a tar.gz whose bytes depend on nothing but the bundle's: no times, no owners, files in
// the order of their names. Media, which are links in the folder, are files in the archive.
func PackBundle(ctx context.Context, dir string, w io.Writer) error {
	zip, err := gzip.NewWriterLevel(w, gzip.BestSpeed)
	if err != nil {
		return err
	}
	archive := tar.NewWriter(zip)
	// WalkDir goes through each folder in lexical order.
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if e.IsDir() {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return packFile(archive, path, filepath.ToSlash(name))
	})
	if err == nil {
		err = archive.Close()
	}
	if err == nil {
		err = zip.Close()
	}
	if err != nil {
		return fmt.Errorf("pack the bundle: %w", err)
	}
	return nil
}

func packFile(archive *tar.Writer, path, name string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: info.Size(), Mode: 0o600, ModTime: time.Unix(0, 0).UTC(), Format: tar.FormatPAX}); err != nil {
		return err
	}
	_, err = io.CopyN(archive, f, info.Size())
	return err
}
