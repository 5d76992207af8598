package project

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/ianaindex"
)

// decodeText reads one character of an encoding other than UTF-8. It returns errUndecodable for bytes that are none.
type decodeText func(r *bufio.Reader) (rune, error)

var errUndecodable = errors.New("bytes that are no character of the encoding")

// decoderOf finds an encoding by the name that Python or the IANA gives it. Nil means UTF-8.
func decoderOf(name string) (decodeText, error) {
	switch strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name)) {
	case "", "utf8", "utf8sig", "u8", "ascii", "usascii":
		return nil, nil
	case "latin1", "latin", "l1", "iso88591", "88591":
		return latin1, nil
	case "utf16", "u16":
		return utf16Reader(nil), nil
	case "utf16le":
		return utf16Reader(binary.LittleEndian), nil
	case "utf16be":
		return utf16Reader(binary.BigEndian), nil
	}
	iana := name
	if n, ok := strings.CutPrefix(strings.ToLower(name), "cp125"); ok {
		iana = "windows-125" + n
	}
	if e, err := ianaindex.IANA.Encoding(iana); err == nil {
		if cm, ok := e.(*charmap.Charmap); ok {
			return singleByte(cm), nil
		}
	}
	return nil, badData("the encoding %q of a data file is not known", name).
		WithHint("use utf-8, latin-1, windows-1252, utf-16 or another single-byte encoding, or save the file as UTF-8")
}

func latin1(r *bufio.Reader) (rune, error) {
	b, err := r.ReadByte()
	return rune(b), err
}

func singleByte(cm *charmap.Charmap) decodeText {
	return func(r *bufio.Reader) (rune, error) {
		b, err := r.ReadByte()
		if err != nil {
			return 0, err
		}
		c := cm.DecodeByte(b)
		if c == utf8.RuneError {
			return 0, errUndecodable
		}
		return c, nil
	}
}

// utf16Reader reads UTF-16; without an order the byte order mark decides, and without a mark it is little-endian.
func utf16Reader(order binary.ByteOrder) decodeText {
	return func(r *bufio.Reader) (rune, error) {
		if order == nil {
			order = binary.LittleEndian
			if mark, err := r.Peek(2); err == nil && mark[0] == 0xFE && mark[1] == 0xFF {
				order = binary.BigEndian
			}
		}
		unit := func() (rune, error) {
			var b [2]byte
			_, err := io.ReadFull(r, b[:])
			if errors.Is(err, io.ErrUnexpectedEOF) {
				err = errUndecodable
			}
			return rune(order.Uint16(b[:])), err
		}
		c, err := unit()
		if err != nil || !utf16.IsSurrogate(c) {
			return c, err
		}
		low, err := unit()
		if c = utf16.DecodeRune(c, low); err != nil || c == utf8.RuneError {
			return 0, errUndecodable
		}
		return c, nil
	}
}

// transcode copies the file as UTF-8 into a temporary file that has no name any more, so that offsets into it are those
// of characters as everything else reads them.
func (f *dataFile) transcode(in io.Reader) (*os.File, error) {
	out, err := os.CreateTemp("", "potato-data-*")
	if err != nil {
		return nil, fmt.Errorf("copy %s as UTF-8: %w", f.name, err)
	}
	// On Windows an open file keeps its name; the system's temporary folder is cleaned in its own time.
	_ = os.Remove(out.Name())
	r, w := bufio.NewReaderSize(in, 256<<10), bufio.NewWriterSize(out, 256<<10)
	for line, first := 1, true; ; first = false {
		c, err := f.decode(r)
		switch {
		case errors.Is(err, io.EOF):
			if err := w.Flush(); err != nil {
				_ = out.Close()
				return nil, fmt.Errorf("copy %s as UTF-8: %w", f.name, err)
			}
			return out, nil
		case errors.Is(err, errUndecodable):
			_ = out.Close()
			return nil, f.problem(line, "bytes that are no character of the encoding that data_files names for it").
				WithHint("name the file's own encoding, or save it as UTF-8")
		case err != nil:
			_ = out.Close()
			return nil, f.cannotRead(err)
		}
		if c == '\n' {
			line++
		}
		if first && c == '\uFEFF' {
			continue
		}
		if _, err := w.WriteRune(c); err != nil {
			_ = out.Close()
			return nil, fmt.Errorf("copy %s as UTF-8: %w", f.name, err)
		}
	}
}
