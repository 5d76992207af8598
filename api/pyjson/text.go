package pyjson

import (
	"unicode/utf8"
)

func hexValue(c byte) int {
	switch {
	case c >= '0' && c <= '9':
		return int(c - '0')
	case c >= 'a' && c <= 'f':
		return int(c-'a') + 10
	case c >= 'A' && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

func hex4(b []byte) rune {
	return rune(hexValue(b[0])<<12 | hexValue(b[1])<<8 | hexValue(b[2])<<4 | hexValue(b[3]))
}

const (
	surrogateLow  = 0xD800
	surrogateMid  = 0xDC00
	surrogateHigh = 0xE000
)

// appendUnquoted decodes the escapes of a string that skipString has accepted.
func appendUnquoted(dst, raw []byte) []byte {
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c != '\\' {
			dst = append(dst, c)
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r := hex4(raw[i+1:])
			i += 4
			if r >= surrogateLow && r < surrogateMid && i+6 < len(raw) && raw[i+1] == '\\' && raw[i+2] == 'u' {
				if low := hex4(raw[i+3:]); low >= surrogateMid && low < surrogateHigh {
					r = (r-surrogateLow)<<10 + (low - surrogateMid) + 0x10000
					i += 6
				}
			}
			dst = appendRune(dst, r)
		default:
			dst = append(dst, raw[i])
		}
	}
	return dst
}

// appendRune appends a code point, surrogates included.
func appendRune(dst []byte, r rune) []byte {
	if r >= surrogateLow && r < surrogateHigh {
		return append(dst, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0x3F, 0x80|byte(r)&0x3F)
	}
	return utf8.AppendRune(dst, r)
}

// IsSurrogate reports whether r is half a surrogate pair.
func IsSurrogate(r rune) bool { return r >= surrogateLow && r < surrogateHigh }

// DecodeRune is utf8.DecodeRuneInString that knows surrogates; bytes that are neither come back as (RuneError, 1).
func DecodeRune(s string) (rune, int) {
	r, n := utf8.DecodeRuneInString(s)
	if r == utf8.RuneError && n == 1 && len(s) >= 3 && s[0] == 0xED && s[1] >= 0xA0 && s[1] <= 0xBF && s[2]&0xC0 == 0x80 {
		return rune(s[0]&0x0F)<<12 | rune(s[1]&0x3F)<<6 | rune(s[2]&0x3F), 3
	}
	return r, n
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string, as json.dumps(s, ensure_ascii=False) writes it, with two kinds of characters
// escaped beyond that: lone surrogates, which no UTF-8 file can hold, and the line ends U+0085, U+2028 and U+2029,
// at which Python's splitlines would cut a line of JSON in two. Bytes that are no text become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if plain[c] {
				i++
				continue
			}
			dst = append(dst, s[from:i]...)
			dst = appendEscape(dst, c)
			i++
			from = i
			continue
		}
		r, n := DecodeRune(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			dst = append(append(dst, s[from:i]...), "\uFFFD"...)
		case r >= surrogateLow && r < surrogateHigh, r == 0x85, r == 0x2028, r == 0x2029:
			dst = append(dst, s[from:i]...)
			dst = append(dst, '\\', 'u', hexDigits[r>>12], hexDigits[r>>8&15], hexDigits[r>>4&15], hexDigits[r&15])
		default:
			i += n
			continue
		}
		i += n
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
}
