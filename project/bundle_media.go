package project

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"potato/api/pyjson"
)

// mediaDir is the bundle's folder of media; rows name files relative to it.
const mediaDir = "media"

// mediaFields are looked at in this order for an item's picture, sound or film.
var mediaFields = []string{"image_url", "image", "image_path", "file_name", "audio_url", "audio", "audio_path", "video_url", "video", "video_path", "url", "path"}

var pictureSuffixes = []string{".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff"}

type picture int

const (
	noPicture picture = iota
	localPicture
	remotePicture
)

// mediaLinks puts the items' media into a bundle. Only files of the study's folder go in: a bundle travels to other
// machines, and a data file must not be able to take /etc/passwd along.
type mediaLinks struct {
	cfg     *Config
	dir     string
	bySrc   map[string]string // file → path in the bundle; empty: there is none
	taken   map[string]bool
	linked  int
	missing int
	outside int
}

func newMediaLinks(cfg *Config, dir string) *mediaLinks {
	return &mediaLinks{cfg: cfg, dir: filepath.Join(dir, mediaDir), bySrc: map[string]string{}, taken: map[string]bool{}}
}

// fields lists what has to be read of an item: its text, then the fields that may name media.
func (m *mediaLinks) fields(ts []*targets) []string {
	text := m.cfg.ItemProperties.TextKey
	for _, t := range ts {
		if f := t.q.SourceField; f != nil && *f != text {
			return []string{text, *f}
		}
	}
	return append([]string{text}, slices.DeleteFunc(slices.Clone(mediaFields), func(f string) bool { return f == text })...)
}

// append adds an item's media to its row.
func (m *mediaLinks) append(b []byte, values []pyjson.Value) ([]byte, picture, error) {
	i := slices.IndexFunc(values, pyjson.Value.Truthy)
	if i < 0 {
		return b, noPicture, nil
	}
	name := values[i].Str()
	kind := noPicture
	if slices.Contains(pictureSuffixes, strings.ToLower(filepath.Ext(name))) {
		kind = localPicture
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		if kind == localPicture {
			kind = remotePicture
		}
		m.linked++
		return pyjson.AppendString(append(b, `, "media": `...), name), kind, nil
	}
	rel, err := m.link(name)
	if err != nil {
		return b, noPicture, err
	}
	if rel == "" {
		m.missing++
		return pyjson.AppendString(append(b, `, "media_missing": `...), name), noPicture, nil
	}
	m.linked++
	return pyjson.AppendString(append(b, `, "media": `...), rel), kind, nil
}

// link puts a file into the bundle and returns its path there, or nothing when there is no such file in the study.
func (m *mediaLinks) link(name string) (string, error) {
	if strings.ContainsRune(name, 0) {
		return "", nil
	}
	src := m.source(name)
	if rel, known := m.bySrc[src]; known {
		return rel, nil
	}
	task := m.cfg.TaskPath()
	within, err := filepath.Rel(task, src)
	if err != nil || !filepath.IsLocal(within) {
		if inMedia, err := filepath.Rel(m.cfg.MediaPath(), src); err != nil || !filepath.IsLocal(inMedia) {
			m.outside++
			return "", nil
		}
	}
	info, err := os.Stat(src)
	if err != nil || !info.Mode().IsRegular() {
		m.bySrc[src] = ""
		return "", nil
	}
	rel := m.name(filepath.ToSlash(within), filepath.Base(src))
	to := filepath.Join(m.dir, filepath.FromSlash(rel))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return "", fmt.Errorf("put media into the bundle: %w", err)
	}
	if err := linkOrCopy(src, to); err != nil {
		return "", fmt.Errorf("put media into the bundle: %w", err)
	}
	m.bySrc[src] = rel
	return rel, nil
}

// source is the file that a name means.
func (m *mediaLinks) source(name string) string {
	if rest, ok := strings.CutPrefix(name, "/media/"); ok {
		return filepath.Join(m.cfg.MediaPath(), filepath.FromSlash(rest))
	}
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(m.cfg.TaskPath(), filepath.FromSlash(name))
}

// name spreads files over folders as the published tool does, and keeps two files of one name apart.
func (m *mediaLinks) name(within, base string) string {
	sum := sha1.Sum([]byte(within))
	hash := hex.EncodeToString(sum[:])
	rel := hash[:2] + "/" + base
	for n := 8; m.taken[rel]; n += 8 {
		rel = hash[:2] + "/" + hash[:min(n, len(hash))] + "-" + base
	}
	m.taken[rel] = true
	return rel
}

func linkOrCopy(src, to string) error {
	abs, err := filepath.Abs(src)
	if err != nil {
		return err
	}
	if err := os.Symlink(abs, to); err == nil {
		return nil
	}
	in, err := os.Open(src)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func (m *mediaLinks) warnings() []string {
	if m.outside == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d items name media outside the study's folder, which are left out", m.outside)}
}
