package project

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"potato/api"
	"potato/api/pyjson"
)

// Texts finds the texts of a bundle's items that are too long to be kept elsewhere. Where they are is found out when the first
// of a split is asked for, and then held: some bytes for each long text, none of the texts.
type Texts struct {
	bundle *Bundle
	least  int // bytes; shorter ones are not found
	files  map[string]*textFile
}

type textFile struct {
	*os.File
	at map[string]int64 // where the lines of long texts begin, by instance id
}

// Texts finds texts of at least so many bytes. Close it.
func (b *Bundle) Texts(least int) *Texts {
	return &Texts{bundle: b, least: least, files: map[string]*textFile{}}
}

// Close closes the bundle's files.
func (t *Texts) Close() error {
	var err error
	for _, f := range t.files {
		err = errors.Join(err, f.Close())
	}
	return err
}

// Of is the text of an item of val, test or unlabeled. NotFound has code text_not_found.
func (t *Texts) Of(role, instanceID string) (string, error) {
	for _, split := range t.bundle.splits() {
		if api.SplitRole(split) != role || role == api.SplitTrain {
			continue
		}
		f, err := t.file(split)
		if err != nil {
			return "", err
		}
		at, found := f.at[instanceID]
		if !found {
			continue
		}
		d := pyjson.NewDecoder(bufio.NewReaderSize(io.NewSectionReader(f, at, 1<<62), 64<<10))
		item, err := readRow(d, role)
		if err != nil {
			return "", badRow(split, err)
		}
		return item.Text, nil
	}
	return "", api.NotFoundf("text_not_found", "the bundle has no long text of %s", instanceID)
}

func (t *Texts) file(split string) (*textFile, error) {
	if f := t.files[split]; f != nil {
		return f, nil
	}
	file, err := os.Open(filepath.Join(t.bundle.Dir, filepath.Base(t.bundle.Manifest.Splits[split].Path)))
	if err != nil {
		return nil, fmt.Errorf("read the bundle: %w", err)
	}
	f := &textFile{file, map[string]int64{}}
	t.files[split] = f
	r := bufio.NewReaderSize(file, 64<<10)
	for at := int64(0); ; {
		line, err := r.ReadBytes('\n')
		if len(line) >= t.least {
			item, err := readRow(pyjson.NewDecoder(bytes.NewReader(line)), api.SplitRole(split))
			if err != nil {
				return nil, badRow(split, err)
			}
			f.at[item.InstanceID] = at
		}
		at += int64(len(line))
		if errors.Is(err, io.EOF) {
			return f, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the bundle: %w", err)
		}
	}
}
