package pyjson

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Kind is the kind of a JSON value, told by its first byte.
type Kind byte

// The kinds of values; numbers are Number whether whole or not, NaN and Infinity included.
const (
	Null   Kind = 'n'
	Bool   Kind = 'b'
	Number Kind = '0'
	String Kind = '"'
	Array  Kind = '['
	Object Kind = '{'
)

const (
	readSize = 64 << 10
	// maxDepth is near the depth at which Python's own parser gives up.
	maxDepth = 900
	// maxValue bounds a single string or raw value, so that a file that never closes a quote is not read into memory whole.
	maxValue = 256 << 20
)

// SyntaxError is JSON that cannot be read, and where.
type SyntaxError struct {
	Line   int
	Offset int64
	Msg    string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Msg) }

// ErrTruncated is JSON that ends before its value does; it is wrapped in no SyntaxError.
var ErrTruncated = errors.New("the JSON ends before its value does")

// Decoder reads values one after another, without keeping what was read. It reads ahead, so that the reader's own place means nothing.
type Decoder struct {
	r     io.Reader // nil when buf is all there is
	buf   []byte
	pos   int   // the next byte to look at
	keep  int   // bytes before this may be dropped; -1: up to pos
	base  int64 // offset of buf[0]
	lines int   // newlines before buf[0]
	depth int
	first bool // the next member or element is the first of its container
	tmp   []byte
}

// NewDecoder reads from r.
func NewDecoder(r io.Reader) *Decoder {
	return &Decoder{r: r, keep: -1, buf: make([]byte, 0, readSize)}
}

// NewBytes reads from b, which must not change meanwhile.
func NewBytes(b []byte) *Decoder { return &Decoder{buf: b, keep: -1} }

// Reset makes the decoder read from b.
func (d *Decoder) Reset(b []byte) {
	*d = Decoder{buf: b, keep: -1, tmp: d.tmp}
}

// Offset is the place of the next byte, counted from the start.
func (d *Decoder) Offset() int64 { return d.base + int64(d.pos) }

// Line is the line of the next byte, from 1.
func (d *Decoder) Line() int { return d.lines + bytes.Count(d.buf[:d.pos], []byte{'\n'}) + 1 }

// fill reads more; it returns io.EOF when there is none.
func (d *Decoder) fill() error {
	if d.r == nil {
		return io.EOF
	}
	drop := d.pos
	if d.keep >= 0 {
		drop = d.keep
	}
	if drop > 0 {
		d.lines += bytes.Count(d.buf[:drop], []byte{'\n'})
		d.buf = d.buf[:copy(d.buf, d.buf[drop:])]
		d.base += int64(drop)
		d.pos -= drop
		if d.keep >= 0 {
			d.keep = 0
		}
	}
	if len(d.buf) >= maxValue {
		return d.Errorf("a value of more than %d MB", maxValue>>20)
	}
	if cap(d.buf)-len(d.buf) < readSize/2 {
		grown := make([]byte, len(d.buf), 2*cap(d.buf)+readSize)
		copy(grown, d.buf)
		d.buf = grown
	}
	for range 100 {
		n, err := d.r.Read(d.buf[len(d.buf):cap(d.buf)])
		d.buf = d.buf[:len(d.buf)+n]
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// Errorf is a SyntaxError at the present place.
func (d *Decoder) Errorf(format string, args ...any) error {
	return &SyntaxError{Line: d.Line(), Offset: d.Offset(), Msg: fmt.Sprintf(format, args...)}
}

// need makes the next byte available.
func (d *Decoder) need() error {
	if d.pos < len(d.buf) {
		return nil
	}
	err := d.fill()
	if errors.Is(err, io.EOF) {
		return ErrTruncated
	}
	return err
}

func (d *Decoder) space() error {
	for {
		for ; d.pos < len(d.buf); d.pos++ {
			switch d.buf[d.pos] {
			case ' ', '\t', '\n', '\r':
			default:
				return nil
			}
		}
		if err := d.fill(); err != nil {
			return err
		}
	}
}

// More reports whether anything but white space is left. At the end it returns false and no error.
func (d *Decoder) More() (bool, error) {
	err := d.space()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// Peek tells the kind of the next value without reading it.
func (d *Decoder) Peek() (Kind, error) {
	if err := d.space(); err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrTruncated
		}
		return 0, err
	}
	switch c := d.buf[d.pos]; {
	case c == '{', c == '[', c == '"':
		return Kind(c), nil
	case c == 'n':
		return Null, nil
	case c == 't', c == 'f':
		return Bool, nil
	case c == '-', c >= '0' && c <= '9', c == 'N', c == 'I':
		return Number, nil
	default:
		return 0, d.Errorf("a JSON value cannot begin with %q", rune(c))
	}
}

// enter reads the byte that opens a container.
func (d *Decoder) enter(open Kind) error {
	k, err := d.Peek()
	if err != nil {
		return err
	}
	if k != open {
		return d.Errorf("expected %q", rune(open))
	}
	if d.depth++; d.depth > maxDepth {
		return d.Errorf("values nested more than %d deep", maxDepth)
	}
	d.pos++
	d.first = true
	return nil
}

// next moves to the next element or member; false means that the container has ended.
func (d *Decoder) next(closing byte) (bool, error) {
	first := d.first
	d.first = false
	if err := d.space(); err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrTruncated
		}
		return false, err
	}
	if d.buf[d.pos] == closing {
		d.pos++
		d.depth--
		return false, nil
	}
	if first {
		return true, nil
	}
	if d.buf[d.pos] != ',' {
		return false, d.Errorf("expected ',' or %q", rune(closing))
	}
	d.pos++
	return true, nil
}

// EnterArray reads '['; NextElement must follow.
func (d *Decoder) EnterArray() error { return d.enter(Array) }

// NextElement says whether another element follows, which must be read before the next call.
func (d *Decoder) NextElement() (bool, error) { return d.next(']') }

// EnterObject reads '{'; NextMember must follow.
func (d *Decoder) EnterObject() error { return d.enter(Object) }

// NextMember reads the next member's name. Its value must be read before the next call. The name is valid until then.
func (d *Decoder) NextMember() (name []byte, ok bool, err error) {
	if ok, err = d.next('}'); !ok || err != nil {
		return nil, false, err
	}
	k, err := d.Peek()
	if err != nil {
		return nil, false, err
	}
	if k != String {
		return nil, false, d.Errorf("expected a member's name in double quotes")
	}
	raw, err := d.rawString()
	if err != nil {
		return nil, false, err
	}
	// Looking for the colon may move the buffer that raw points into.
	d.tmp = appendUnquoted(d.tmp[:0], raw)
	if err := d.space(); err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrTruncated
		}
		return nil, false, err
	}
	if d.buf[d.pos] != ':' {
		return nil, false, d.Errorf("expected ':'")
	}
	d.pos++
	return d.tmp, true, nil
}

// EachMember reads an object and calls member with each name, which is valid until the value is read; member must read it.
func (d *Decoder) EachMember(member func(name []byte) error) error {
	if err := d.EnterObject(); err != nil {
		return err
	}
	for {
		name, more, err := d.NextMember()
		if err != nil || !more {
			return err
		}
		if err := member(name); err != nil {
			return err
		}
	}
}

// EachElement reads an array and calls element for each of its elements; element must read it.
func (d *Decoder) EachElement(element func() error) error {
	if err := d.EnterArray(); err != nil {
		return err
	}
	for {
		more, err := d.NextElement()
		if err != nil || !more {
			return err
		}
		if err := element(); err != nil {
			return err
		}
	}
}
