package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"potato/api"
	"potato/project"
	"potato/trainers"
)

// Archive is a run's packed bundle, open for reading.
type Archive struct {
	*os.File
	SHA256 string // as hex
}

// packs reports whether runs of the backend need their bundle as one file: everywhere but on this machine.
func (s *Supervisor) packs(backend string) bool {
	b, ok := s.backend(backend)
	return ok && b.Type != api.BackendLocal
}

// pack writes the run's bundle as one file, once, with its SHA-256 beside it: whoever downloads it gets the very bytes
// that were hashed, also after a restart.
func (s *Supervisor) pack(ctx context.Context, a *active) error {
	dir := s.folder(a.id)
	s.step(ctx, a, "packing the bundle")
	if err := copyTrainers(s.o.Config.TrainersPath(), filepath.Join(dir.bundle(), bundledTrainers)); err != nil {
		return fmt.Errorf("pack the study's trainers: %w", err)
	}
	tmp, err := os.CreateTemp(string(dir), ".bundle-*") // 0600
	if err != nil {
		return fmt.Errorf("pack the bundle: %w", err)
	}
	sum := sha256.New()
	err = project.PackBundle(ctx, dir.bundle(), io.MultiWriter(tmp, sum))
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = writeFile(dir.archiveSum(), []byte(hex.EncodeToString(sum.Sum(nil))+"  "+filepath.Base(dir.archive())+"\n"))
	}
	if err == nil {
		err = os.Rename(tmp.Name(), dir.archive())
	}
	if err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return nil
}

// bundledTrainers is the folder of a packed bundle that has the study's own trainers: where it is unpacked they are not.
const bundledTrainers = "trainers"

// copyTrainers copies the Python files of a folder; the folder may be none.
func copyTrainers(from, to string) error {
	return trainers.EachStudyFile(from, func(name string, content []byte) error {
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, 0o600)
	})
}

// Archive opens the run's packed bundle for the agent that has the run. While it is built the answer is kept back for a
// while, and then it is Unavailable with code bundle_not_ready.
func (d AgentDesk) Archive(ctx context.Context, id api.RunID, lease string) (*Archive, error) {
	patience, cancel := context.WithTimeout(ctx, d.s.o.BundleWait)
	defer cancel()
	for {
		next := d.s.hub.wait(id)
		if _, err := d.holder(ctx, api.Job{RunID: id, Lease: lease}); err != nil {
			return nil, err
		}
		r, err := d.s.db.RunByID(ctx, id)
		if err != nil {
			return nil, err
		}
		if r.Status != api.RunBuilding {
			return openArchive(d.s.folder(id))
		}
		select {
		case <-next:
		case <-patience.Done():
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, api.Unavailablef("bundle_not_ready", "The bundle of run %s is being built", id).WithHint("ask again in a second")
		}
	}
}

func openArchive(dir folder) (*Archive, error) {
	gone := api.NotFoundf("bad_bundle", "the run's packed bundle is gone from the server").
		WithHint("the run's folder was changed while it ran; start the run again")
	text, err := os.ReadFile(dir.archiveSum())
	if err != nil {
		return nil, gone.WithCause(err)
	}
	f, err := os.Open(dir.archive())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, gone.WithCause(err)
	}
	if err != nil {
		return nil, fmt.Errorf("open the packed bundle: %w", err)
	}
	sum, _, _ := strings.Cut(string(text), " ")
	return &Archive{File: f, SHA256: sum}, nil
}
