package agent

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// maxText is how many bytes of a text go into one event. Quoted as JSON they can double, and an event may have 64 KiB.
const maxText = 30 << 10

// clean makes a worker's bytes a text that is safe in a terminal and a page: valid UTF-8, lines ended by \n alone, no
// escape sequences, no other control characters.
func clean(b []byte) string {
	if plain(b) {
		return string(b)
	}
	b = bytes.ToValidUTF8(b, []byte("\uFFFD"))
	var out strings.Builder
	out.Grow(len(b))
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		switch {
		case r == '\x1b':
			n = escapeLen(b[i:])
		case r == '\r': // a progress bar writes over its line; \r\n is one end
			if i+1 == len(b) || b[i+1] != '\n' {
				out.WriteByte('\n')
			}
		case r == '\n' || r == '\t' || r >= 0x20 && r != 0x7f && (r < 0x80 || r > 0x9f):
			out.WriteRune(r)
		}
		i += n
	}
	return out.String()
}

func plain(b []byte) bool {
	for _, c := range b {
		if c < 0x20 && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// escapeLen is the length of the terminal's escape sequence that b begins with.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return len(b)
	}
	switch b[1] {
	case '[': // up to a letter or one of @ [ \ ] ^ _ ` { | } ~
		for i := 2; i < len(b); i++ {
			if b[i] >= 0x40 && b[i] <= 0x7e {
				return i + 1
			}
			if b[i] < 0x20 { // cut off
				return i
			}
		}
		return len(b)
	case ']': // up to BEL or ESC \, on one line
		for i := 2; i < len(b); i++ {
			switch {
			case b[i] == 0x07:
				return i + 1
			case b[i] == 0x1b && i+1 < len(b) && b[i+1] == '\\':
				return i + 2
			case b[i] == '\n':
				return i
			}
		}
		return len(b)
	}
	n := 1
	for n < len(b) && b[n] >= 0x20 && b[n] <= 0x2f { // such as the ( of ESC ( B
		n++
	}
	if n < len(b) && b[n] >= 0x20 && b[n] < 0x7f {
		n++
	}
	return n
}

// cut shortens a text to at most n bytes, at the border of a character, and says so.
func cut(s string, n int) string {
	const mark = " … (cut)"
	if len(s) <= n {
		return s
	}
	return s[:runeBorder(s, n-len(mark))] + mark
}

// runeBorder is the last border of a character at or before n.
func runeBorder[T string | []byte](s T, n int) int {
	for i := n; i > n-utf8.UTFMax && i > 0; i-- {
		if utf8.RuneStart(s[i]) {
			return i
		}
	}
	return n
}
