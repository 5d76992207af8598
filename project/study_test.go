package project_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"potato/api"
	"potato/project"
)

// folder is a study on disk that a test writes.
type folder struct {
	tb      testing.TB
	dir     string
	data    string // value of data_files
	schemes string
	more    string // further top-level keys
	train   string // inside of model_training
}

const moodScheme = "- {annotation_type: radio, name: mood, description: d, labels: [good, bad, mixed]}\n"

func newFolder(tb testing.TB, schemes string) *folder {
	return &folder{tb: tb, dir: tb.TempDir(), data: "[items.json]", schemes: schemes}
}

// write puts a file into the study.
func (f *folder) write(name, text string) {
	f.tb.Helper()
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		f.tb.Fatal(err)
	}
	// As the annotation tool saves: a reader sees the old file or the new one.
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		f.tb.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		f.tb.Fatal(err)
	}
}

// label writes an annotator's file with one answer for each item, given as "id": `pairs`.
func (f *folder) label(user string, answers map[string]string) {
	f.tb.Helper()
	f.write("out/"+user+"/user_state.json", state(user, answers))
}

func state(user string, answers map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"user_id": %q, "instance_id_to_label_to_value": {`, user)
	first := true
	for id, pairs := range answers {
		if !first {
			b.WriteString(", ")
		}
		first = false
		fmt.Fprintf(&b, "%q: [%s]", id, pairs)
	}
	b.WriteString("}}")
	return b.String()
}

// radio is a stored answer to a radio scheme.
func radio(scheme, label string) string {
	return fmt.Sprintf(`[{"schema": %q, "name": %q}, %q]`, scheme, label, label)
}

// config loads the study's config, which must be good.
func (f *folder) config() *project.Config {
	f.tb.Helper()
	f.write("config.yaml", "annotation_task_name: test\noutput_annotation_dir: out\nitem_properties: {id_key: id, text_key: text}\n"+
		"data_files: "+f.data+"\nannotation_schemes:\n"+f.schemes+"model_training: {enabled: true, "+f.train+"}\n"+f.more)
	c, r := project.Load(filepath.Join(f.dir, "config.yaml"))
	if c == nil {
		f.tb.Fatalf("the config is refused:\n%s", strings.Join(found(r.Errors), "\n"))
	}
	return c
}

func (f *folder) open() *project.Study {
	f.tb.Helper()
	s := project.OpenStudy(f.config())
	f.tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.tb.Error(err)
		}
	})
	return s
}

// bundle builds a bundle of the schemes and opens it.
func (f *folder) bundle(s *project.Study, opts project.BundleOptions) *project.Bundle {
	f.tb.Helper()
	dir := filepath.Join(f.tb.TempDir(), "bundle")
	if _, err := s.BuildBundle(context.Background(), dir, opts); err != nil {
		f.tb.Fatal(err)
	}
	b, err := project.OpenBundle(dir)
	if err != nil {
		f.tb.Fatal(err)
	}
	return b
}

// rows are the lines of one of the bundle's files.
func rows(tb testing.TB, b *project.Bundle, split string) []string {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join(b.Dir, split+".jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// targets are the targets of all labelled rows, by id.
func targets(tb testing.TB, b *project.Bundle) map[string]string {
	tb.Helper()
	out := map[string]string{}
	for split, s := range b.Manifest.Splits {
		if s.N == 0 || s.PredictOnly {
			continue
		}
		for _, row := range rows(tb, b, split) {
			id := between(row, `"instance_id": "`, `"`)
			out[id] = between(row, `"targets": `, "}") + "}"
		}
	}
	return out
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// refused checks that an error is one for people, and what it says.
func refused(tb testing.TB, err error, code string, says ...string) {
	tb.Helper()
	if !api.HasCode(err, code) {
		tb.Errorf("got %v, want an error with code %s", err, code)
		return
	}
	for _, text := range says {
		if !strings.Contains(err.Error(), text) {
			tb.Errorf("the error is %q and does not say %q", err, text)
		}
	}
	if api.AsError(err).Hint == "" {
		tb.Errorf("the error %q has no hint", err)
	}
}
