package api

import (
	"strings"
	"unicode"
)

const maxPrintable = 4000 // bytes

// Printable is a stranger's text as one line that is safe on a terminal, no longer than a sentence may be.
func Printable(text string) string {
	if len(text) > maxPrintable {
		text = strings.ToValidUTF8(text[:maxPrintable], "") + " …"
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
