package project_test

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"potato/project"
)

// The published tool's own bundles of the study in testdata/peer have these digests. Split rule, order of rows, texts,
// consensus, majority and digest are its own, so that ours come out equal to the byte; of a scale it writes 4.0 where we
// write 4.
func TestBundleIsThePeers(t *testing.T) {
	cases := []struct{ scheme, aggregation, digest string }{
		{"mood", "consensus", "04bf7e5bae243804549a5b932be814f0901258b4617fa3fb878ba2668a05032e"},
		{"quality", "consensus", "d5384000bac8669d948cbf1eb3534dd9add168de2dd8a79b2cd015776a473812"},
		{"mood", "majority", "ffa3409be19f83aea81e51b3c72dccba1c29607e979d9560455195516466c32f"},
		{"quality", "majority", "73108d7dd7c8fa6055903e6c17c57db3e1b3b09bdf07cb25022cb47f007a20d5"},
	}
	for _, c := range cases {
		t.Run(c.scheme+" "+c.aggregation, func(t *testing.T) {
			f := peerFolder(t)
			f.train = "split_seed: 3, aggregation: " + c.aggregation
			b := f.bundle(f.open(), project.BundleOptions{Schemas: []string{c.scheme}, IncludeUnlabeled: true})
			got := digest(t, b, regexp.MustCompile(`("quality": \d)`), "$1.0")
			if got != c.digest {
				t.Errorf("digest %s, want the peer's %s", got, c.digest)
			}
			if c.scheme == "mood" && b.Manifest.Digest != got {
				t.Errorf("the manifest says %s, the files %s", b.Manifest.Digest, got)
			}
		})
	}
}

func peerFolder(tb testing.TB) *folder {
	f := newFolder(tb, moodScheme+"- {annotation_type: likert, name: quality, description: d, size: 5, min_label: a, max_label: b}\n")
	f.write("items.json", read(tb, "testdata/peer/items.json"))
	for _, user := range []string{"ann", "bob", "cyd", "dee"} {
		f.write("out/"+user+"/user_state.json", read(tb, "testdata/peer/"+user+".json"))
	}
	return f
}

func read(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// digest works the digest out from its description alone.
func digest(tb testing.TB, b *project.Bundle, replace *regexp.Regexp, with string) string {
	tb.Helper()
	entries, err := os.ReadDir(b.Dir)
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".jsonl") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	h := sha256.New()
	for _, name := range names {
		_, _ = io.WriteString(h, name)
		_, _ = io.WriteString(h, replace.ReplaceAllString(read(tb, b.Dir+"/"+name), with))
	}
	return hex.EncodeToString(h.Sum(nil))
}
