package handlers

import (
	"crypto/sha256"
	"crypto/subtle"
)

// minKeyLength is the length from which an admin key is one (K1): admin rights mean code execution on training machines.
const minKeyLength = 16

// KeyWeakness says what is wrong with an admin key, as the end of a sentence that begins with admin_api_key; a good key
// has none.
func KeyWeakness(key string) string {
	switch {
	case key == "":
		return "is missing"
	case key == "change-me":
		return "is the placeholder change-me"
	case len(key) < minKeyLength:
		return "has fewer than 16 characters"
	}
	return ""
}

// sameKey compares in a time that tells nothing, not even the length.
func sameKey(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
