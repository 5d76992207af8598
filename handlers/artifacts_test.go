package handlers_test

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"potato/api"
)

// modelled is a run whose artifacts folder has files of every sort.
func modelled(t *testing.T) (*study, api.RunID) {
	s := films(t, "")
	id := s.trained()
	dir := filepath.Join(s.config.TrainingPath(), "runs", string(id), "artifacts")
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	must(t, os.WriteFile(filepath.Join(dir, "model.bin"), []byte("0123456789"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "sub", "page ü.html"), []byte("<script>alert(1)</script>"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	must(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
	must(t, os.Symlink("model.bin", filepath.Join(dir, "inner")))
	must(t, os.Symlink("sub", filepath.Join(dir, "folder")))
	return s, id
}

func file(id api.RunID, path string) string { return run(id, "/artifact?path="+url.QueryEscape(path)) }

func TestArtifacts(t *testing.T) {
	s, id := modelled(t)
	got := map[string]api.Artifact{}
	for _, a := range decode[api.ArtifactList](t, s.get(run(id, "/artifacts")).ok(t, 200)).Artifacts {
		got[a.Path] = a
	}
	sum := sha256.Sum256([]byte("0123456789"))
	if want := (api.Artifact{Path: "model.bin", Bytes: 10, SHA256: hex.EncodeToString(sum[:]), Where: "server"}); got["model.bin"] != want {
		t.Errorf("got %+v", got["model.bin"])
	}
	for _, path := range []string{"link", "inner", "folder", "folder/page ü.html"} {
		if _, ok := got[path]; ok {
			t.Errorf("%s is listed", path)
		}
	}
	a := s.get(file(id, "sub/page ü.html")).ok(t, 200)
	if a.text != "<script>alert(1)</script>" {
		t.Errorf("got %q", a.text)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename*=utf-8''page%20%C3%BC.html",
		"X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox; frame-ancestors 'none'", "Content-Length": "25",
	} {
		if got := a.Header.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if a := s.get(file(id, "empty")).ok(t, 200); a.text != "" || a.Header.Get("Content-Length") != "0" {
		t.Errorf("the empty file: %q", a.text)
	}
}

func TestArtifactsStayInTheirFolder(t *testing.T) {
	s, id := modelled(t)
	for _, path := range []string{
		"../spec.json", "sub/../../spec.json", "/etc/passwd", "..", ".", "sub", "sub/", "link", "inner", "folder/page ü.html", "nothing", "model.bin/", "./model.bin",
		"model.bin\x00", `..\spec.json`, "sub//page ü.html", strings.Repeat("x", 900),
	} {
		s.get(file(id, path)).refused(t, 404, "artifact_not_found")
	}
	s.get(run(id, "/artifact")).refused(t, 422, "invalid_request")
	s.get(file(id, "")).refused(t, 422, "invalid_request")
	s.get(file(id, strings.Repeat("x", 1001))).refused(t, 422, "invalid_request")
}

func TestArtifactRanges(t *testing.T) {
	s, id := modelled(t)
	path := file(id, "model.bin")
	whole := s.get(path).ok(t, 200)
	etag := whole.Header.Get("ETag")
	if etag == "" || whole.Header.Get("Accept-Ranges") != "bytes" {
		t.Fatalf("headers %v", whole.Header)
	}
	for _, c := range []struct {
		name, value, text, contentRange string
		status                          int
	}{
		{"Range", "bytes=2-4", "234", "bytes 2-4/10", 206},
		{"Range", "bytes=7-", "789", "bytes 7-9/10", 206},
		{"Range", "bytes=-2", "89", "bytes 8-9/10", 206},
		{"Range", "bytes=0-1,4-5", "0123456789", "", 200},
		{"If-None-Match", etag, "", "", 304},
		{"If-None-Match", `"other"`, "0123456789", "", 200},
		{"If-Modified-Since", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), "", "", 304},
		{"If-Match", `"other"`, "0123456789", "", 200},
		{"If-Unmodified-Since", "Mon, 02 Jan 2006 15:04:05 GMT", "0123456789", "", 200},
	} {
		a := s.get(path, header(c.name, c.value))
		if a.ok(t, c.status); a.text != c.text || a.Header.Get("Content-Range") != c.contentRange {
			t.Errorf("%s: %s: got %q, %q", c.name, c.value, a.text, a.Header.Get("Content-Range"))
		}
	}
	a := s.get(path, header("Range", "bytes=10-"))
	a.refused(t, 416, "bad_range")
	if got := a.Header.Get("Content-Range"); got != "bytes */10" {
		t.Errorf("Content-Range is %q", got)
	}
	s.get(path, header("Range", "apples=1-2")).refused(t, 416, "bad_range")
	for ifRange, want := range map[string]int{etag: 206, `"other"`: 200} {
		s.get(path, header("Range", "bytes=2-4"), header("If-Range", ifRange)).ok(t, want)
	}
	if a := s.do("HEAD", path, nil).ok(t, 200); a.text != "" || a.Header.Get("Content-Length") != "10" {
		t.Errorf("HEAD: %q, %v", a.text, a.Header)
	}
}
