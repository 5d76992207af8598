package pyjson

import (
	"bytes"
	"errors"
	"io"
	"strconv"
)

// ReadString reads a string.
func (d *Decoder) ReadString() (string, error) {
	b, err := d.ReadStringBytes()
	return string(b), err
}

// ReadStringBytes reads a string and returns its text, which is valid until the next call.
func (d *Decoder) ReadStringBytes() ([]byte, error) {
	k, err := d.Peek()
	if err != nil {
		return nil, err
	}
	if k != String {
		return nil, d.Errorf("expected a string")
	}
	raw, err := d.rawString()
	if err != nil || bytes.IndexByte(raw, '\\') < 0 {
		return raw, err
	}
	d.tmp = appendUnquoted(d.tmp[:0], raw)
	return d.tmp, nil
}

// ReadFloat reads a number; one that is too large is an infinity, as in Python.
func (d *Decoder) ReadFloat() (float64, error) {
	k, err := d.Peek()
	if err != nil {
		return 0, err
	}
	if k != Number {
		return 0, d.Errorf("expected a number")
	}
	text, err := d.literal()
	if err != nil {
		return 0, err
	}
	f, _ := strconv.ParseFloat(string(text), 64)
	return f, nil
}

// Skip reads a value and forgets it.
func (d *Decoder) Skip() error {
	k, err := d.Peek()
	if err != nil {
		return err
	}
	switch k {
	case String:
		return d.skipString()
	case Array:
		if err := d.EnterArray(); err != nil {
			return err
		}
		for {
			more, err := d.NextElement()
			if err != nil || !more {
				return err
			}
			if err := d.Skip(); err != nil {
				return err
			}
		}
	case Object:
		if err := d.EnterObject(); err != nil {
			return err
		}
		for {
			more, err := d.next('}')
			if err != nil || !more {
				return err
			}
			if err := d.skipMember(); err != nil {
				return err
			}
		}
	default:
		_, err := d.literal()
		return err
	}
}

func (d *Decoder) skipMember() error {
	k, err := d.Peek()
	if err != nil {
		return err
	}
	if k != String {
		return d.Errorf("expected a member's name in double quotes")
	}
	if err := d.skipString(); err != nil {
		return err
	}
	if err := d.space(); err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrTruncated
		}
		return err
	}
	if d.buf[d.pos] != ':' {
		return d.Errorf("expected ':'")
	}
	d.pos++
	return d.Skip()
}

// rawString reads a string and returns what is between the quotes, valid until the next read.
func (d *Decoder) rawString() ([]byte, error) {
	d.keep = d.pos
	if err := d.skipString(); err != nil {
		return nil, err
	}
	raw := d.buf[d.keep+1 : d.pos-1]
	d.keep = -1
	return raw, nil
}

// plain marks the bytes that mean nothing special in a string.
var plain = func() (t [256]bool) {
	for i := 0x20; i < 256; i++ {
		t[i] = i != '"' && i != '\\'
	}
	return t
}()

// skipString reads a string, checking its escapes.
func (d *Decoder) skipString() error {
	d.pos++
	for {
		b := d.buf
		i := d.pos
		for i < len(b) && plain[b[i]] {
			i++
		}
		d.pos = i
		if i == len(b) {
			if err := d.need(); err != nil {
				return err
			}
			continue
		}
		switch c := b[i]; c {
		case '"':
			d.pos++
			return nil
		case '\\':
			if err := d.skipEscape(); err != nil {
				return err
			}
		default:
			return d.Errorf("a string holds the control character 0x%02x; it must be written as an escape", c)
		}
	}
}

func (d *Decoder) skipEscape() error {
	d.pos++
	if err := d.need(); err != nil {
		return err
	}
	c := d.buf[d.pos]
	d.pos++
	switch c {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return nil
	case 'u':
		for range 4 {
			if err := d.need(); err != nil {
				return err
			}
			if hexValue(d.buf[d.pos]) < 0 {
				return d.Errorf("\\u must be followed by four hex digits")
			}
			d.pos++
		}
		return nil
	default:
		return d.Errorf("%q is no escape", "\\"+string(rune(c)))
	}
}

// literal reads null, true, false or a number and returns its text, valid until the next read.
func (d *Decoder) literal() ([]byte, error) {
	d.keep = d.pos
	ended := false
scan:
	for {
		for ; d.pos < len(d.buf); d.pos++ {
			if !inLiteral(d.buf[d.pos]) {
				break scan
			}
		}
		if err := d.fill(); errors.Is(err, io.EOF) {
			ended = true // a number may end where the text ends
			break
		} else if err != nil {
			return nil, err
		}
	}
	text := d.buf[d.keep:d.pos]
	d.keep = -1
	if !validLiteral(text) {
		if ended {
			return nil, ErrTruncated
		}
		return nil, d.Errorf("%q is no JSON value", truncate(text))
	}
	return text, nil
}

func inLiteral(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '+' || c == '.'
}

func truncate(b []byte) []byte {
	if len(b) > 40 {
		return b[:40]
	}
	return b
}

func validLiteral(b []byte) bool {
	switch string(b) {
	case "null", "true", "false", "NaN", "Infinity", "-Infinity":
		return true
	}
	i := 0
	if i < len(b) && b[i] == '-' {
		i++
	}
	start := i
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if !digits() || (b[start] == '0' && i-start > 1) {
		return false
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(b)
}
