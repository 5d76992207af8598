package project

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"potato/api"
	"potato/api/pyjson"
)

// bundleWriter writes the rows of a bundle, one item after another in the order of their ids.
type bundleWriter struct {
	cfg       *Config
	view      *view
	dir       string
	unlabeled bool
	targets   []*targets
	used      [][]bool // scheme → answer → it occurs in a row
	split     *splitter
	files     []*splitFile // by the splitter's place; the last is for unlabelled items
	media     *mediaLinks
	stats     api.BundleStats
	images    int // labelled rows that are pictures
	row       []byte
}

// splitFile is one .jsonl file of a bundle.
type splitFile struct {
	name string
	f    *os.File
	w    *bufio.Writer
	rows int
}

func newBundleWriter(cfg *Config, v *view, dir string, unlabeled bool) *bundleWriter {
	return &bundleWriter{cfg: cfg, view: v, dir: dir, unlabeled: unlabeled, media: newMediaLinks(cfg, dir),
		split: newSplitter(cfg.ModelTraining.SplitSeed, cfg.ModelTraining.Splits)}
}

func (w *bundleWriter) write(ctx context.Context) (api.Manifest, error) {
	for _, t := range w.targets {
		w.used = append(w.used, make([]bool, len(t.answers.labels)))
	}
	if err := w.writeRows(ctx); err != nil {
		return api.Manifest{}, err
	}
	if err := w.trainable(); err != nil {
		return api.Manifest{}, err
	}
	m := w.manifest()
	var err error
	if m.Digest, err = bundleDigest(w.dir); err != nil {
		return m, err
	}
	if err := writeJSON(filepath.Join(w.dir, "labels.json"), m.Labels); err != nil {
		return m, err
	}
	return m, writeJSON(filepath.Join(w.dir, "manifest.json"), m)
}

// trainable refuses a bundle that no trainer could use, with the counts.
func (w *bundleWriter) trainable() error {
	rows := 0
	for _, f := range w.files {
		if f.name == api.SplitTrain && f.rows > 0 {
			return nil
		}
		if f.name != api.SplitUnlabeled {
			rows += f.rows
		}
	}
	return api.Invalidf("validation_failed", "there is nothing to train on: of %d items, %d have an answer, %d of these a label, and none of them falls into the training split",
		w.stats.NItems, w.stats.NAnnotated, rows).WithHint("label more items")
}

func (w *bundleWriter) writeRows(ctx context.Context) (err error) {
	defer func() {
		for _, f := range w.files {
			if bad := f.close(); err == nil {
				err = bad
			}
		}
		w.files = slices.DeleteFunc(w.files, func(f *splitFile) bool {
			if f.name != api.SplitUnlabeled || f.rows > 0 {
				return false
			}
			_ = os.Remove(f.f.Name())
			return true
		})
	}()
	for _, name := range append(slices.Clone(w.split.names), api.SplitUnlabeled) {
		f, err := os.OpenFile(filepath.Join(w.dir, name+".jsonl"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("write the bundle: %w", err)
		}
		w.files = append(w.files, &splitFile{name: name, f: f, w: bufio.NewWriterSize(f, 256<<10)})
	}
	ix := w.view.items
	fields := ix.fields(w.media.fields(w.targets)...)
	defer fields.close()
	w.stats.NItems = len(ix.items)
	for i, it := range ix.items {
		if i%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		to := w.fileOf(i, it)
		if to == nil {
			continue
		}
		values, err := fields.read(it)
		if err != nil {
			return err
		}
		if err := w.writeRow(to, i, it, values); err != nil {
			return err
		}
	}
	return nil
}

// fileOf decides where an item goes: nil means that it is left out.
func (w *bundleWriter) fileOf(i int, it item) *splitFile {
	labelled, answered := false, false
	for _, t := range w.targets {
		labelled = labelled || t.of[i] >= 0
		answered = answered || t.answered[i]
	}
	if answered {
		w.stats.NAnnotated++
	}
	switch {
	case labelled:
		return w.files[w.split.of(it.id)]
	case answered:
		w.stats.NSkippedNoLabel++
		return nil
	case w.unlabeled:
		return w.files[len(w.files)-1]
	}
	return nil
}

// writeRow writes the row as Python's json.dumps would, so that where our targets are the published tool's, the digest
// is its digest.
func (w *bundleWriter) writeRow(to *splitFile, i int, it item, values []pyjson.Value) error {
	text := ""
	if values[0].Truthy() {
		text = values[0].Str()
	}
	b := append(w.row[:0], `{"instance_id": `...)
	b = pyjson.AppendString(b, it.id)
	b = append(b, `, "text": `...)
	b = pyjson.AppendString(b, text)
	if to.name != api.SplitUnlabeled {
		b = w.appendTargets(append(b, `, "targets": {`...), i)
	}
	b, picture, err := w.media.append(b, values[1:])
	if err != nil {
		return err
	}
	if to.name != api.SplitUnlabeled && (picture == localPicture || picture == remotePicture && text == "") {
		w.images++
	}
	b = append(b, '}', '\n')
	w.row = b
	to.rows++
	if _, err := to.w.Write(b); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	return nil
}

func (w *bundleWriter) appendTargets(b []byte, i int) []byte {
	first := true
	for n, t := range w.targets {
		a := t.of[i]
		if a < 0 {
			continue
		}
		if !first {
			b = append(b, `, `...)
		}
		first = false
		w.used[n][a] = true
		b = append(pyjson.AppendString(b, t.q.Name), `: `...)
		b = t.q.appendTarget(b, t.answers.labels[a])
	}
	return append(b, '}')
}

// appendTarget writes one answer: a list of labels, a number of a scale, or a label.
func (q *question) appendTarget(b []byte, labels []string) []byte {
	switch {
	case q.many():
		b = append(b, '[')
		for i, l := range labels {
			if i > 0 {
				b = append(b, `, `...)
			}
			b = pyjson.AppendString(b, l)
		}
		return append(b, ']')
	case q.Kind == api.KindOrdinal && isNumber(labels[0]):
		return append(b, labels[0]...)
	}
	return pyjson.AppendString(b, labels[0])
}

// isNumber reports whether a label is a JSON number, as 4 is and 04 is not.
func isNumber(label string) bool {
	v, err := pyjson.Parse([]byte(label))
	if err != nil || v.Kind != pyjson.Number {
		return false
	}
	f, err := strconv.ParseFloat(v.Text, 64)
	return err == nil && f == f
}

func (f *splitFile) close() error {
	err := f.w.Flush()
	if bad := f.f.Close(); err == nil {
		err = bad
	}
	if err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	return nil
}

// modality is image when most labelled rows are pictures.
func (w *bundleWriter) modality() string {
	rows := 0
	for _, f := range w.files {
		if f.name != api.SplitUnlabeled {
			rows += f.rows
		}
	}
	if rows > 0 && 10*w.images >= 8*rows {
		return "image"
	}
	return "text"
}

// bundleDigest is the published tool's: SHA-256 over name and content of each .jsonl file, sorted by name.
func bundleDigest(dir string) (string, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return "", err
	}
	slices.Sort(names)
	h := sha256.New()
	for _, path := range names {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("read the bundle: %w", err)
		}
		_, _ = io.WriteString(h, filepath.Base(path))
		_, err = io.Copy(h, f)
		_ = f.Close()
		if err != nil {
			return "", fmt.Errorf("read the bundle: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writeJSON writes a file as Python's json.dumps(indent=2) does.
func writeJSON(path string, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("write %s: %w", filepath.Base(path), err)
	}
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		return fmt.Errorf("write the bundle: %w", err)
	}
	return nil
}
