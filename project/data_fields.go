package project

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"potato/api/pyjson"
)

// fieldReader reads some fields of items again, in any order. It is for one goroutine.
type fieldReader struct {
	ix    *itemIndex
	names []string
	files []*windowReader // by file, opened when first needed
	d     *pyjson.Decoder
	cells []string
	out   []pyjson.Value
}

func (ix *itemIndex) fields(names ...string) *fieldReader {
	return &fieldReader{ix: ix, names: names, files: make([]*windowReader, len(ix.files)), d: pyjson.NewBytes(nil), out: make([]pyjson.Value, len(names))}
}

// read returns the fields in the order they were asked for; one that the item lacks has Kind 0. They are valid until
// the next call.
func (r *fieldReader) read(it item) ([]pyjson.Value, error) {
	f := r.ix.files[it.file]
	w := r.files[it.file]
	if w == nil {
		in, err := f.open()
		if err != nil {
			return nil, err
		}
		w = &windowReader{in: in}
		r.files[it.file] = w
	}
	b, err := w.at(it.off, int(it.n))
	if err != nil {
		return nil, err
	}
	clear(r.out)
	if f.format == formatCSV || f.format == formatTSV {
		r.cells = f.table.split(r.cells[:0], b)
		for i, name := range r.names {
			if c := f.table.column(name); c >= 0 && c < len(r.cells) {
				r.out[i] = pyjson.Value{Kind: pyjson.String, Text: r.cells[c]}
			} else if c >= 0 {
				r.out[i] = pyjson.Value{Kind: pyjson.String}
			}
		}
		return r.out, nil
	}
	if err := r.object(b); err != nil {
		return nil, fmt.Errorf("read item %q of %s again: %w", it.id, f.name, err)
	}
	return r.out, nil
}

func (r *fieldReader) object(b []byte) error {
	r.d.Reset(b)
	return r.d.EachMember(func(name []byte) (err error) {
		i := slices.Index(r.names, string(name))
		if i < 0 {
			return r.d.Skip()
		}
		r.out[i], err = r.d.Read()
		return err
	})
}

func (r *fieldReader) close() {
	for _, w := range r.files {
		if w != nil {
			_ = w.in.Close()
		}
	}
}

const windowSize = 256 << 10

// windowReader reads stretches of a file, ahead of them as long as they come in order and exactly them when they do not.
type windowReader struct {
	in  dataReader
	buf []byte
	off int64
	end int64 // of the last stretch
}

func (w *windowReader) at(off int64, n int) ([]byte, error) {
	if off >= w.off && off+int64(n) <= w.off+int64(len(w.buf)) {
		w.end = off + int64(n)
		return w.buf[off-w.off:][:n], nil
	}
	size := n
	if off >= w.end && off-w.end < windowSize {
		size = max(n, windowSize)
	}
	if cap(w.buf) < size {
		w.buf = make([]byte, size)
	}
	got, err := w.in.ReadAt(w.buf[:size], off)
	if got < n {
		w.buf = w.buf[:0]
		if err == nil || errors.Is(err, io.EOF) {
			err = errDataChanged
		}
		return nil, err
	}
	w.buf, w.off, w.end = w.buf[:got], off, off+int64(n)
	return w.buf[:n], nil
}
