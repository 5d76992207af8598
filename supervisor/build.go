package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"potato/api"
	"potato/project"
	"potato/store"
)

// build writes the run's bundle and spec into its folder, keeps its items, and lets the run be running. It may be broken
// off anywhere and done again from the beginning.
func (s *Supervisor) build(ctx context.Context, a *active, r store.Run) error {
	building, release := a.untilStop(ctx)
	defer release()
	manifest, err := s.buildBundle(building, a, r)
	if err == nil && s.packs(a.backend) {
		err = s.pack(building, a)
	}
	if err != nil {
		switch {
		case a.finished():
			return s.finishedWith(ctx, a)
		case a.ending():
			return context.Canceled
		}
		return runError(err, "bad_bundle", "the bundle could not be built by a fault of this server, whose log has the details")
	}
	counts := map[string]*int{}
	for _, role := range []string{api.SplitTrain, api.SplitVal, api.SplitTest, api.SplitUnlabeled} {
		counts[role] = new(int)
	}
	for name, split := range manifest.Splits {
		*counts[api.SplitRole(name)] += split.N
	}
	step, message := "waiting for the worker", "Training on "+r.Backend
	return s.move(ctx, a.id, api.RunBuilding, api.RunRunning, store.RunUpdate{
		NTrain: counts[api.SplitTrain], NVal: counts[api.SplitVal], NTest: counts[api.SplitTest], NUnlabeled: counts[api.SplitUnlabeled],
		BundleDigest: &manifest.Digest, Warn: limited(manifest.Stats.Warnings), Step: &step, Message: &message,
	})
}

func (s *Supervisor) buildBundle(ctx context.Context, a *active, r store.Run) (api.Manifest, error) {
	dir := s.folder(a.id)
	manifest, err := s.o.Study.BuildBundle(ctx, dir.bundle(), project.BundleOptions{
		Schemas: r.SchemaNames, IncludeUnlabeled: s.o.Config.ModelTraining.Writeback.IncludeUnlabeled,
	})
	if err != nil {
		return manifest, err
	}
	bundle, err := project.OpenBundle(dir.bundle())
	if err != nil {
		return manifest, err
	}
	if err := s.db.StoreRunItems(ctx, a.id, bundle.Items()); err != nil {
		return manifest, err
	}
	s.note(ctx, a, "info", fmt.Sprintf("The bundle has %d items: %s", manifest.Stats.NItems, splitCounts(manifest)))
	return manifest, writeSpec(dir.spec(), s.spec(dir, r, manifest))
}

func splitCounts(m api.Manifest) string {
	text := ""
	for _, name := range []string{api.SplitTrain, api.SplitVal, api.SplitTest, api.SplitUnlabeled} {
		if split, ok := m.Splits[name]; ok {
			text += ", " + strconv.Itoa(split.N) + " " + name
		}
	}
	if text == "" {
		return "none"
	}
	return text[2:]
}

// spec is what the run's worker will read; whoever launches it puts its own folders in.
func (s *Supervisor) spec(dir folder, r store.Run, m api.Manifest) api.Spec {
	c := s.o.Config.ModelTraining
	spec := api.Spec{
		V: 1, RunID: r.RunID, Attempt: 1, Trainer: r.Trainer, Schemas: m.Schemas, BundleDir: dir.bundle(), Workdir: dir.artifacts(),
		Params: r.Params, Seed: c.SplitSeed,
	}
	if c.MaxWallSeconds > 0 {
		spec.Limits.MaxWallS = &c.MaxWallSeconds
	}
	if r.Backend == project.LocalBackend {
		spec.Limits.Device = c.Device
		if c.NumThreads > 0 {
			spec.Limits.NumThreads = &c.NumThreads
		}
		if c.MaxRAMMB > 0 {
			spec.Limits.MaxRAMMB = &c.MaxRAMMB
		}
		if path := s.o.Config.TrainersPath(); path != "" {
			spec.TrainersDir = &path
		}
	}
	return spec
}

func writeSpec(path string, spec api.Spec) error {
	b, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return fmt.Errorf("write the spec: %w", err)
	}
	if err := writeFile(path, append(b, '\n')); err != nil {
		return fmt.Errorf("write the spec: %w", err)
	}
	return nil
}

func readSpec(path string) (api.Spec, error) {
	var spec api.Spec
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return spec, api.Unavailablef("bad_bundle", "%s of the run is gone", filepath.Base(path)).
			WithHint("the run's folder was removed while it ran; start the run again").WithCause(err)
	}
	if err != nil {
		return spec, err
	}
	return spec, json.Unmarshal(b, &spec)
}

// limited bounds the warnings that one step adds to a run; the log has all of them.
func limited(warnings []string) []string {
	if len(warnings) > maxWarnings {
		return append(warnings[:maxWarnings:maxWarnings], fmt.Sprintf("and %d more", len(warnings)-maxWarnings))
	}
	return warnings
}
