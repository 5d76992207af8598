package pyjson

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// repr writes the value as Python's repr prints it.
func (v Value) repr(b *strings.Builder) {
	switch v.Kind {
	case Bool:
		if v.Text == "true" {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case Number:
		b.WriteString(numberRepr(v.Text))
	case String:
		stringRepr(b, v.Text)
	case Array:
		b.WriteByte('[')
		for i, e := range v.Elements {
			if i > 0 {
				b.WriteString(", ")
			}
			e.repr(b)
		}
		b.WriteByte(']')
	case Object:
		b.WriteByte('{')
		for i, m := range v.Members {
			if i > 0 {
				b.WriteString(", ")
			}
			stringRepr(b, m.Name)
			b.WriteString(": ")
			m.Value.repr(b)
		}
		b.WriteByte('}')
	default:
		b.WriteString("None")
	}
}

func numberRepr(text string) string {
	switch text {
	case "NaN":
		return "nan"
	case "Infinity":
		return "inf"
	case "-Infinity":
		return "-inf"
	case "-0":
		return "0"
	}
	if !strings.ContainsAny(text, ".eE") {
		return text // an integer, of any length
	}
	f, _ := strconv.ParseFloat(text, 64) // out of range gives ±Inf, as in Python
	return FloatRepr(f)
}

// FloatRepr prints a float as Python does: 1.0, 1e+16, 1e-07.
func FloatRepr(f float64) string {
	e := strconv.FormatFloat(f, 'e', -1, 64)
	i := strings.IndexByte(e, 'e')
	if i < 0 { // Inf and NaN
		return strings.TrimPrefix(strings.ToLower(e), "+")
	}
	exp, _ := strconv.Atoi(e[i+1:])
	if exp < -4 || exp >= 16 {
		return e
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

func stringRepr(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	b.WriteByte(quote)
	for i := 0; i < len(s); {
		r, n := DecodeRune(s[i:])
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteByte(byte(r))
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7F || r > 0x7E && r < 0x100 && !unicode.IsPrint(r):
			b.WriteString(`\x` + pad(r, 2))
		case r == utf8.RuneError && n == 1, unicode.IsPrint(r):
			b.WriteString(s[i : i+n])
		case r < 0x10000:
			b.WriteString(`\u` + pad(r, 4))
		default:
			b.WriteString(`\U` + pad(r, 8))
		}
		i += n
	}
	b.WriteByte(quote)
}

func pad(r rune, n int) string {
	s := strconv.FormatInt(int64(r), 16)
	return strings.Repeat("0", n-len(s)) + s
}
