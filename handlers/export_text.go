package handlers

import (
	"strings"
	"unicode/utf8"

	"potato/api/pyjson"
)

// escapeHalves writes half a surrogate pair, as ids and texts from the web hold it, as the escape that JSON has for it: it
// has no form in UTF-8, and U+FFFD in its place would make one id of two. Backslashes before such an escape, and before what
// only looks like one, are doubled, so that the text can be told from it: an odd number of them means an escape.
func escapeHalves(s string) string {
	if utf8.ValidString(s) && !strings.Contains(s, `\ud`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		slashes := len(s[i:]) - len(strings.TrimLeft(s[i:], `\`))
		b.WriteString(s[i : i+slashes])
		i += slashes
		r, size := pyjson.DecodeRune(s[i:])
		half := pyjson.IsSurrogate(r)
		if half || looksEscaped(s[i:]) {
			b.WriteString(s[i-slashes : i])
		}
		if half {
			quoted := pyjson.AppendString(nil, s[i:i+size])
			b.Write(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(strings.ToValidUTF8(s[i:i+size], "\uFFFD"))
		}
		i += size
	}
	return b.String()
}

// looksEscaped reports whether s goes on like the escape of half a surrogate pair behind its backslash.
func looksEscaped(s string) bool {
	return len(s) >= 5 && s[:2] == "ud" && strings.IndexByte("89abcdef", s[2]) >= 0 && strings.Trim(s[3:5], "0123456789abcdef") == ""
}
