package project

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"potato/api"
)

// dataFormat is how a data file is written, told by its suffix.
type dataFormat int

const (
	formatJSON dataFormat = iota + 1
	formatJSONLines
	formatCSV
	formatTSV
	formatParquet
)

var dataFormats = map[string]dataFormat{
	".json": formatJSON, ".jsonl": formatJSONLines, ".csv": formatCSV, ".tsv": formatTSV, ".parquet": formatParquet,
}

func suffix(path string) string { return strings.ToLower(filepath.Ext(path)) }

// dataFile is one data file of the study. Its bytes are UTF-8 and begin after a byte order mark: a file in another
// encoding is read from a copy.
type dataFile struct {
	path    string
	name    string // as the config names it
	format  dataFormat
	idKey   string
	textKey string
	stamp   os.FileInfo // what was read

	table  tableLayout // of CSV and TSV
	decode decodeText  // nil for UTF-8
	mu     sync.Mutex
	copy   *os.File // in UTF-8, of a file in another encoding
}

// filePart is what indexing one file found.
type filePart struct {
	items            []item
	withoutText      int
	firstWithoutText int // line
	warnings         []string
}

func newDataFile(path, name, encoding string, props ItemProperties) (*dataFile, error) {
	f := &dataFile{path: path, name: name, format: dataFormats[suffix(path)], idKey: props.IDKey, textKey: props.TextKey}
	switch f.format {
	case 0:
		return nil, badData("%s has a suffix that is not read", name).
			WithHint("data files are .json, .jsonl, .csv or .tsv")
	case formatParquet:
		return nil, badData("%s is a parquet file, which is not read here", name).
			WithHint("write it as .jsonl, for instance with pandas: read_parquet(…).to_json(…, orient=\"records\", lines=True)")
	}
	var err error
	if f.decode, err = decoderOf(encoding); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, f.cannotRead(err)
	}
	if !info.Mode().IsRegular() {
		return nil, badData("%s is not a file", name).WithHint("data_files lists files; a folder goes to data_directory")
	}
	f.stamp = info
	return f, nil
}

func (f *dataFile) cannotRead(err error) error {
	switch {
	case errors.Is(err, os.ErrNotExist):
		return badData("the data file %s does not exist", f.name).
			WithHint("mend data_files; paths are relative to task_dir").WithCause(err)
	case errors.Is(err, os.ErrPermission):
		return badData("the data file %s may not be read by this account", f.name).
			WithHint("give the server's account the right to read it").WithCause(err)
	default:
		return fmt.Errorf("read %s: %w", f.path, err)
	}
}

// problem is something wrong in the file, at a line.
func (f *dataFile) problem(line int, format string, args ...any) *api.Error {
	if line == 0 {
		return badData("%s: %s", f.name, fmt.Sprintf(format, args...))
	}
	return badData("%s line %d: %s", f.name, line, fmt.Sprintf(format, args...))
}

// unchanged reports whether the file is still what was read.
func unchanged(old, now os.FileInfo) bool {
	return old != nil && now != nil && os.SameFile(old, now) && old.Size() == now.Size() && old.ModTime().Equal(now.ModTime())
}

// errDataChanged is a data file that changed after it was indexed: its offsets mean nothing any more.
var errDataChanged = errors.New("a data file changed while it was read")

// dataReader is the bytes of a data file in UTF-8.
type dataReader struct {
	*os.File
	shared bool // a copy, which stays open
}

func (r dataReader) Close() error {
	if r.shared {
		return nil
	}
	return r.File.Close()
}

// open gives the file's bytes, or errDataChanged when they are not those that were indexed.
func (f *dataFile) open() (dataReader, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	in, err := os.Open(f.path)
	if err != nil {
		return dataReader{}, f.cannotRead(err)
	}
	now, err := in.Stat()
	if err == nil && !unchanged(f.stamp, now) {
		err = errDataChanged
	}
	if err != nil {
		_ = in.Close()
		return dataReader{}, err
	}
	if f.decode == nil {
		return dataReader{File: in}, nil
	}
	defer func() { _ = in.Close() }()
	if f.copy == nil {
		if f.copy, err = f.transcode(in); err != nil {
			return dataReader{}, err
		}
	}
	return dataReader{File: f.copy, shared: true}, nil
}

// close removes the copy, if there is one.
func (f *dataFile) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.copy != nil {
		_ = f.copy.Close()
		f.copy = nil
	}
}

var byteOrderMark = []byte{0xEF, 0xBB, 0xBF}

// start is the offset behind a byte order mark.
func start(r io.ReaderAt) (int64, error) {
	var b [3]byte
	if _, err := r.ReadAt(b[:], 0); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	if bytes.Equal(b[:], byteOrderMark) {
		return 3, nil
	}
	return 0, nil
}

// index finds every item of the file.
func (f *dataFile) index(ctx context.Context) (*filePart, error) {
	in, err := f.open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = in.Close() }()
	from, err := start(in)
	if err != nil {
		return nil, f.cannotRead(err)
	}
	r := &checkedReader{ctx: ctx, r: io.NewSectionReader(in, from, 1<<62), f: f}
	p := &filePart{}
	switch f.format {
	case formatJSON:
		err = f.indexJSON(p, r, from)
	case formatJSONLines:
		err = f.indexJSONLines(p, r, from)
	default:
		err = f.indexTable(p, r, from)
	}
	return p, err
}

// checkedReader reads a file and refuses what is not UTF-8, with the line. It stops when ctx ends.
type checkedReader struct {
	ctx  context.Context
	r    io.Reader
	f    *dataFile
	line int
	tail [utf8.UTFMax]byte // the beginning of a character that the last read cut
	n    int
}

func (c *checkedReader) Read(b []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := c.r.Read(b)
	if bad := c.check(b[:n], errors.Is(err, io.EOF)); bad != nil {
		return 0, bad
	}
	return n, err
}

func (c *checkedReader) check(b []byte, last bool) error {
	for c.n > 0 && len(b) > 0 && !utf8.FullRune(c.tail[:c.n]) {
		c.tail[c.n] = b[0]
		c.n++
		b = b[1:]
	}
	if c.n > 0 && (utf8.FullRune(c.tail[:c.n]) || last) {
		if !utf8.Valid(c.tail[:c.n]) {
			return c.f.notUTF8(c.line+1, c.tail[0])
		}
		c.n = 0
	}
	body := b
	if !last {
		body = b[:len(b)-cutRune(b)]
	}
	if !utf8.Valid(body) {
		i := 0
		for i < len(body) {
			r, n := utf8.DecodeRune(body[i:])
			if r == utf8.RuneError && n == 1 {
				break
			}
			i += n
		}
		return c.f.notUTF8(c.line+bytes.Count(body[:i], []byte{'\n'})+1, body[i])
	}
	c.line += bytes.Count(body, []byte{'\n'})
	c.n += copy(c.tail[c.n:], b[len(body):])
	return nil
}

// cutRune is how many bytes at the end begin a character that goes on in the next read.
func cutRune(b []byte) int {
	for i := 1; i < utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return i
			}
			return 0
		}
	}
	return 0
}

func (f *dataFile) notUTF8(line int, b byte) error {
	e := f.problem(line, "not UTF-8 (byte 0x%02X)", b)
	if line == 1 && (b == 0xFF || b == 0xFE) {
		return e.WithHint("it looks like UTF-16: save it as UTF-8, or name it with `encoding: utf-16` beside its path in data_files")
	}
	return e.WithHint("save the file as UTF-8, or name its encoding, for instance `encoding: windows-1252`, beside its path in data_files")
}

// lineAt is the line of an offset, from 1, or 0 when the file cannot be read again. It reads all that is before, and is
// for the few places that people are told.
func (f *dataFile) lineAt(off int64) int {
	in, err := f.open()
	if err != nil {
		return 0
	}
	defer func() { _ = in.Close() }()
	line := 1
	buf := make([]byte, 64<<10)
	for r := io.NewSectionReader(in, 0, off); ; {
		n, err := r.Read(buf)
		line += bytes.Count(buf[:n], []byte{'\n'})
		if errors.Is(err, io.EOF) {
			return line
		}
		if err != nil {
			return 0
		}
	}
}
