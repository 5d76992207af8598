package project_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"potato/api"
	"potato/project"
)

func TestBundle(t *testing.T) {
	f := fiveItems(t, moodScheme+topicsScheme+"- {annotation_type: likert, name: quality, description: d, size: 5, min_label: a, max_label: b}\n")
	f.train = "splits: {train: 0.6, dev: 0.4}"
	f.label("ann", map[string]string{"a": radio("mood", "good") + "," + radio("quality", "4"), "b": many("food") + "," + radio("mood", "bad") + "," + radio("quality", "7"), "c": `[{"schema": "mood", "name": "free_response"}, "x"]`, "d": radio("quality", "10") + "," + radio("mood", "bad")})
	b := f.bundle(f.open(), project.BundleOptions{Schemas: []string{"mood", "topics", "quality"}, IncludeUnlabeled: true})
	want := api.Manifest{
		V: 1,
		Schemas: []api.Scheme{
			{Name: "mood", AnnotationType: "radio", Kind: api.KindNominal, Labels: []string{"good", "bad", "mixed"}},
			{Name: "topics", AnnotationType: "multiselect", Kind: api.KindMultilabel, Labels: []string{"travel", "food", "art"}},
			{Name: "quality", AnnotationType: "likert", Kind: api.KindOrdinal, Labels: []string{"1", "2", "3", "4", "5"}},
		},
		Splits: map[string]api.ManifestSplit{
			"train": {Path: "train.jsonl", Format: "jsonl", N: 1}, "dev": {Path: "dev.jsonl", Format: "jsonl", N: 2},
			"unlabeled": {Path: "unlabeled.jsonl", Format: "jsonl", N: 1, PredictOnly: true},
		},
		Labels:   map[string][]string{"mood": {"bad", "good"}, "topics": {"food"}, "quality": {"4", "7", "10"}},
		MediaDir: "media", Modality: "text", TextKey: "text", Aggregation: "consensus", Digest: b.Manifest.Digest,
		Stats: api.BundleStats{NItems: 5, NAnnotated: 4, NSkippedNoLabel: 1, Splits: map[string]int{"train": 1, "dev": 2}, Warnings: []string{}},
	}
	if !reflect.DeepEqual(b.Manifest, want) {
		t.Errorf("manifest\n%+v, want\n%+v", b.Manifest, want)
	}
	if got := read(t, filepath.Join(b.Dir, "labels.json")); !strings.Contains(got, `"topics": [`) {
		t.Errorf("labels.json is %s", got)
	}

	var items []api.BundleItem
	for item, err := range b.Items() {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	order := func(i api.BundleItem) string { return i.Split }
	if got := []string{order(items[0]), order(items[1]), order(items[2]), order(items[3])}; len(items) != 4 || !slices.Equal(got, []string{"train", "val", "val", "unlabeled"}) {
		t.Errorf("items %+v", items)
	}
	var held []api.BundleItem
	for item, err := range b.HeldOut() {
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, item)
	}
	if !reflect.DeepEqual(held, items[1:3]) || held[0].Text != "A" || !reflect.DeepEqual(held[0].Targets, map[string][]string{"mood": {"good"}, "quality": {"4"}}) {
		t.Errorf("held out %+v", held)
	}
}

func TestBundleIsDeterministicAndReplaced(t *testing.T) {
	f := peerFolder(t)
	s := f.open()
	dir := filepath.Join(t.TempDir(), "run", "bundle")
	opts := project.BundleOptions{Schemas: []string{"mood", "quality"}, IncludeUnlabeled: true}
	first, err := s.BuildBundle(context.Background(), dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	archive := pack(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "stray"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	second, err := project.OpenStudy(f.config()).BuildBundle(context.Background(), dir, opts)
	if err != nil || !reflect.DeepEqual(first, second) {
		t.Errorf("built again: %+v, %v, want %+v", second, err, first)
	}
	if !bytes.Equal(pack(t, dir), archive) {
		t.Error("packed again, the archive has other bytes")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(dir), ".*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	if info, err := os.Stat(filepath.Join(dir, "train.jsonl")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("train.jsonl: %v, %v, want mode 0600", info.Mode(), err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("bundle: %v, %v, want mode 0700", info.Mode(), err)
	}
}

func pack(tb testing.TB, dir string) []byte {
	tb.Helper()
	var b bytes.Buffer
	if err := project.PackBundle(context.Background(), dir, &b); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

// What cannot be built leaves nothing, and an older bundle as it was.
func TestBundleRefused(t *testing.T) {
	f := fiveItems(t, moodScheme)
	dir := filepath.Join(t.TempDir(), "bundle")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := f.open().BuildBundle(context.Background(), dir, options("mood"))
	refused(t, err, "validation_failed", "nothing to train on", "5 items", "0 have an answer")
	_, err = f.open().BuildBundle(context.Background(), dir, options("moot"))
	refused(t, err, "bad_schemas", "moot")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = f.open().BuildBundle(ctx, dir, options("mood")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(dir))
	if err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

func TestDamagedBundle(t *testing.T) {
	f := peerFolder(t)
	b := f.bundle(f.open(), options("mood"))
	path := filepath.Join(b.Dir, "val.jsonl")
	text := read(t, path)
	if err := os.WriteFile(path, []byte(text[:len(text)-9]), 0o600); err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range b.HeldOut() {
		last = err
	}
	refused(t, last, "bad_bundle", "val.jsonl")
	if err := os.WriteFile(filepath.Join(b.Dir, "manifest.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := project.OpenBundle(b.Dir)
	refused(t, err, "bad_bundle", "manifest")
}

// What the published tool makes of such names was seen by running it; it also takes /etc/passwd along, which we do not.
func TestMedia(t *testing.T) {
	f := newFolder(t, moodScheme)
	f.train = "splits: {train: 1}"
	for name, text := range map[string]string{"media/x.png": "X", "media/sub/y.jpg": "Y", "w.png": "W", "a/same.png": "1", "b/same.png": "2"} {
		f.write(name, text)
	}
	outside := filepath.Join(f.tb.TempDir(), "secret.png")
	if err := os.WriteFile(outside, []byte("S"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(f.dir, "media", "linked.png")); err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{
		"a": `"image": "/media/x.png"`, "b": `"image": "media/sub/y.jpg"`, "c": `"image_url": "http://h/x.png"`, "d": `"path": "nope.png"`,
		"e": `"video": "w.png"`, "f": `"image": "/etc/passwd"`, "g": `"image": "../` + filepath.Base(outside) + `"`, "h": `"image": "/media/../w.png"`,
		"i": `"image": "", "image_path": "w.png"`, "j": `"image": 5`, "k": `"image": "` + outside + `"`, "l": `"image": "a/same.png"`, "m": `"image": "b/same.png"`,
		"n": `"image": "media/linked.png"`, "o": `"image": "a\u0000b"`, "p": `"other": "w.png"`,
	}
	var items []string
	answers := map[string]string{}
	for _, id := range slices.Sorted(func(yield func(string) bool) {
		for id := range fields {
			if !yield(id) {
				return
			}
		}
	}) {
		items = append(items, `{"id": "`+id+`", "text": "t", `+fields[id]+`}`)
		answers[id] = radio("mood", "good")
	}
	f.write("items.json", "["+strings.Join(items, ",")+"]")
	f.label("ann", answers)
	b := f.bundle(f.open(), options("mood"))
	content := map[string]string{}
	for _, row := range rows(t, b, "train") {
		id := between(row, `"instance_id": "`, `"`)
		if media := between(row, `"media": "`, `"`); media != "" {
			content[id] = media
			if !strings.HasPrefix(media, "http") {
				content[id] = read(t, filepath.Join(b.Dir, "media", media))
			}
		} else if missing := between(row, `"media_missing": "`, `"`); missing != "" {
			content[id] = "missing"
		}
	}
	want := map[string]string{"a": "X", "b": "Y", "c": "http://h/x.png", "d": "missing", "e": "W", "f": "missing", "g": "missing", "h": "W", "i": "W", "j": "missing", "k": "missing", "l": "1", "m": "2", "n": "S", "o": "missing"}
	if !reflect.DeepEqual(content, want) {
		t.Errorf("media %v, want %v", content, want)
	}
	warned(t, b, "3 items", "outside")
	if s := b.Manifest.Stats; s.NMediaLinked != 9 || s.NMediaMissing != 6 {
		t.Errorf("%d linked and %d missing, want 9 and 6", s.NMediaLinked, s.NMediaMissing)
	}

	// In the archive they are files.
	zip, err := gzip.NewReader(bytes.NewReader(pack(t, b.Dir)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg || h.Uid != 0 || h.Uname != "" || h.ModTime.Unix() != 0 {
			t.Errorf("%s: %+v", h.Name, h)
		}
		files[h.Name] = string(text)
	}
	if !slices.Contains(slices.Collect(func(yield func(string) bool) {
		for _, text := range files {
			if !yield(text) {
				return
			}
		}
	}), "Y") || files["train.jsonl"] != read(t, filepath.Join(b.Dir, "train.jsonl")) || files["manifest.json"] == "" {
		t.Errorf("archive holds %d files without all that it should", len(files))
	}
}

func TestModality(t *testing.T) {
	for name, c := range map[string]struct{ field, want string }{
		"pictures":              {`"image": "w.png"`, "image"},
		"texts with a picture":  {`"image_url": "https://h/w.png"`, "text"},
		"texts with an address": {`"url": "https://h/page"`, "text"},
		"texts":                 {`"x": 1`, "text"},
	} {
		f := newFolder(t, moodScheme)
		f.write("w.png", "W")
		f.write("items.json", `[{"id":"a","text":"t",`+c.field+`},{"id":"b","text":"t",`+c.field+`}]`)
		f.label("ann", map[string]string{"a": radio("mood", "good"), "b": radio("mood", "bad")})
		if got := f.bundle(f.open(), options("mood")).Manifest.Modality; got != c.want {
			t.Errorf("%s: modality %s, want %s", name, got, c.want)
		}
	}
}

// Callers come from many requests at once.
func TestConcurrentUse(t *testing.T) {
	f := peerFolder(t)
	s := f.open()
	done := make(chan error)
	for i := range 8 {
		dir := filepath.Join(t.TempDir(), "bundle")
		go func() {
			if i%2 == 0 {
				_, err := s.Readiness(context.Background())
				done <- err
				return
			}
			_, err := s.BuildBundle(context.Background(), dir, options("mood"))
			done <- err
		}()
	}
	f.label("more", map[string]string{"r1": radio("mood", "good")})
	f.write("items.json", strings.Replace(read(t, "testdata/peer/items.json"), "[", `[{"id": "new", "text": "x"}, `, 1))
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
