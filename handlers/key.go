package handlers

import (
	"crypto/sha256"
	"crypto/subtle"
)

// sameKey compares in a time that tells nothing, not even the length.
func sameKey(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
