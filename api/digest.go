package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
)

// ReprSHA256 reads the SHA-256 of a whole file out of Repr-Digest (RFC 9530), as hex; empty when there is none.
func ReprSHA256(h http.Header) string { return sha256Of(h) }

// ReprDigest is the header's value for a SHA-256 given as hex.
func ReprDigest(sum string) string { return reprDigest(sum) }

// sha256Of reads the SHA-256 of a whole representation out of Repr-Digest (RFC 9530), as hex; empty when there is none.
func sha256Of(h http.Header) string {
	for _, v := range h.Values(digestHeader) {
		for member := range strings.SplitSeq(v, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(member), "=")
			value, _, _ = strings.Cut(value, ";") // parameters
			value = strings.TrimSpace(value)
			if !strings.EqualFold(name, "sha-256") || len(value) < 2 || value[0] != ':' || value[len(value)-1] != ':' {
				continue
			}
			if sum, err := base64.StdEncoding.DecodeString(value[1 : len(value)-1]); err == nil && len(sum) == sha256.Size {
				return hex.EncodeToString(sum)
			}
		}
	}
	return ""
}

// reprDigest is the header's value for a SHA-256 given as hex.
func reprDigest(sum string) string {
	b, _ := hex.DecodeString(sum) // made by fileSHA256
	return "sha-256=:" + base64.StdEncoding.EncodeToString(b) + ":"
}

func fileSHA256(r io.Reader) (sum string, n int64, err error) {
	h := sha256.New()
	n, err = io.Copy(h, r)
	return hex.EncodeToString(h.Sum(nil)), n, err
}
