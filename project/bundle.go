package project

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"potato/api"
)

// BundleOptions say what goes into a bundle.
type BundleOptions struct {
	Schemas          []string // the main one first
	IncludeUnlabeled bool     // also the items that nobody has answered, to be predicted
}

// BuildBundle writes the study's labels as a bundle into dir, which appears when it is whole and replaces one that is
// there. The same files give the same bytes. Errors for people have code bad_schemas, bad_data, validation_failed
// (there is nothing to train on), data_changing or disk_full.
func (s *Study) BuildBundle(ctx context.Context, dir string, opts BundleOptions) (api.Manifest, error) {
	for try := 1; ; try++ {
		m, err := s.buildBundle(ctx, dir, opts)
		switch {
		case errors.Is(err, errDataChanged) && try < dataRetries:
			continue
		case errors.Is(err, errDataChanged):
			err = dataChanging(err)
		case api.IsDiskFull(err):
			err = api.Unavailablef("disk_full", "the disk of the runs' folder is full").
				WithHint("free some space, or move the runs with training_dir").WithCause(err)
		}
		return m, err
	}
}

func dataChanging(err error) error {
	return api.Unavailablef("data_changing", "the data files are being written all the time").
		WithHint("try again when whatever writes them is done").WithCause(err)
}

func (s *Study) buildBundle(ctx context.Context, dir string, opts BundleOptions) (api.Manifest, error) {
	questions, err := s.named(opts.Schemas)
	if err != nil {
		return api.Manifest{}, err
	}
	v, err := s.take(ctx)
	if err != nil {
		return api.Manifest{}, err
	}
	defer v.items.release()
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return api.Manifest{}, fmt.Errorf("make the run's folder: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-*")
	if err != nil {
		return api.Manifest{}, fmt.Errorf("make the bundle's folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	w := newBundleWriter(s.cfg, v, tmp, opts.IncludeUnlabeled)
	for _, q := range questions {
		t, _, err := s.targets(ctx, v, q)
		if err != nil {
			return api.Manifest{}, err
		}
		w.targets = append(w.targets, t)
	}
	m, err := w.write(ctx)
	if err != nil {
		return api.Manifest{}, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return api.Manifest{}, fmt.Errorf("remove an older bundle: %w", err)
	}
	if err := os.Rename(tmp, dir); err != nil {
		return api.Manifest{}, fmt.Errorf("put the bundle in place: %w", err)
	}
	return m, nil
}

// manifest describes what was written.
func (w *bundleWriter) manifest() api.Manifest {
	m := api.Manifest{
		V: 1, Schemas: []api.Scheme{}, Splits: map[string]api.ManifestSplit{}, Labels: map[string][]string{}, MediaDir: mediaDir, Modality: w.modality(),
		TextKey: w.cfg.ItemProperties.TextKey, SplitSeed: w.cfg.ModelTraining.SplitSeed, Aggregation: w.cfg.ModelTraining.aggregation(), Stats: w.stats,
	}
	m.Stats.NMediaLinked, m.Stats.NMediaMissing = w.media.linked, w.media.missing
	m.Stats.Splits = map[string]int{}
	m.Stats.Warnings = append([]string{}, w.view.warnings...)
	for _, f := range w.files {
		m.Splits[f.name] = api.ManifestSplit{Path: f.name + ".jsonl", Format: "jsonl", N: f.rows, PredictOnly: f.name == api.SplitUnlabeled}
		if f.name != api.SplitUnlabeled {
			m.Stats.Splits[f.name] = f.rows
		}
	}
	for i, t := range w.targets {
		m.Schemas = append(m.Schemas, t.q.Scheme)
		m.Labels[t.q.Name] = w.observed(i)
		m.Stats.Warnings = append(append(m.Stats.Warnings, t.warnings...), t.left.warnings(t.q.Name)...)
	}
	m.Stats.Warnings = append(m.Stats.Warnings, w.media.warnings()...)
	return m
}

// observed are the labels that occur in the bundle: of a scale in its order, of others sorted.
func (w *bundleWriter) observed(i int) []string {
	t := w.targets[i]
	labels := []string{}
	for a, n := range w.used[i] {
		if n {
			labels = append(labels, t.answers.labels[a]...)
		}
	}
	if t.q.Kind == api.KindOrdinal {
		return t.q.sort(labels)
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}
