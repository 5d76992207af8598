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
	"slices"
	"sync"

	"potato/api"
	"potato/store"
)

// sums remembers the digests of files that have not changed: a model of gigabytes takes seconds.
type sums struct {
	mu    sync.Mutex
	known map[sumKey]string
}

type sumKey struct {
	id    api.RunID
	path  string
	size  int64
	mtime int64
}

// Artifacts lists a run's files, also those that are on the machine that trained alone (G4, H7).
func (s *Supervisor) Artifacts(ctx context.Context, id api.RunID) (api.ArtifactList, error) {
	list := api.ArtifactList{Artifacts: []api.Artifact{}}
	r, err := s.db.RunByID(ctx, id)
	if err != nil {
		return list, err
	}
	if list, err = s.artifactsHere(ctx, id); err != nil || !s.leftElsewhere(r) {
		return list, err
	}
	err = readEvents(s.folder(id).file(eventsFile), 0, func(e api.Event) bool {
		if e.Event == api.EventArtifact && !slices.ContainsFunc(list.Artifacts, func(a api.Artifact) bool { return a.Path == e.Path }) {
			there := api.Artifact{Path: e.Path, Where: "host"}
			if e.Bytes != nil {
				there.Bytes = *e.Bytes
			}
			list.Artifacts = append(list.Artifacts, there)
		}
		return ctx.Err() == nil
	})
	return list, errors.Join(err, ctx.Err())
}

// leftElsewhere reports whether files of a run may lie on the machine that trained and nowhere else. A run without success
// leaves none on a machine that this server goes to.
func (s *Supervisor) leftElsewhere(r store.Run) bool {
	if s.claimedByAgents(r.Backend) {
		return true
	}
	return s.fetcher(r.Backend) != nil && r.Status == api.RunSuccess && r.ArtifactURI != s.folder(r.RunID).artifacts()
}

// artifactsHere lists the files of a run that are on this machine.
func (s *Supervisor) artifactsHere(ctx context.Context, id api.RunID) (api.ArtifactList, error) {
	list := api.ArtifactList{Artifacts: []api.Artifact{}}
	root, err := os.OpenRoot(s.folder(id).artifacts())
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	if err != nil {
		return list, fmt.Errorf("open the artifacts of run %s: %w", id, err)
	}
	defer root.Close() //nolint:errcheck // only read from
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a worker renames and removes while we look
		}
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if !d.Type().IsRegular() { // links and devices are none of ours
			return nil
		}
		st, err := d.Info()
		var sum string
		if err == nil {
			sum, err = s.sums.of(root, id, path, st)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		list.Artifacts = append(list.Artifacts, api.Artifact{Path: path, Bytes: st.Size(), SHA256: sum, Where: "server"})
		return nil
	})
	if err != nil {
		return list, fmt.Errorf("list the artifacts of run %s: %w", id, err)
	}
	return list, nil
}

func (s *sums) of(root *os.Root, id api.RunID, path string, st fs.FileInfo) (string, error) {
	key := sumKey{id, path, st.Size(), st.ModTime().UnixNano()}
	s.mu.Lock()
	sum, ok := s.known[key]
	s.mu.Unlock()
	if ok {
		return sum, nil
	}
	f, err := root.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // only read from
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	sum = hex.EncodeToString(h.Sum(nil))
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) > 10_000 || s.known == nil {
		s.known = map[sumKey]string{}
	}
	s.known[key] = sum
	return sum, nil
}

// OpenArtifact opens one of a run's files for reading. It never leaves the artifacts folder and follows no links. NotFound
// has code artifact_not_found.
func (s *Supervisor) OpenArtifact(ctx context.Context, id api.RunID, path string) (fs.File, error) {
	if _, err := s.db.RunByID(ctx, id); err != nil {
		return nil, err
	}
	missing := api.NotFoundf("artifact_not_found", "run %s has no file %q", id, path)
	if !fs.ValidPath(path) {
		return nil, missing
	}
	root, err := os.OpenRoot(s.folder(id).artifacts())
	if err != nil {
		return nil, missing.WithCause(err)
	}
	defer root.Close() //nolint:errcheck // the file stays open without it
	for i := range path + "/" {
		if i < len(path) && path[i] != '/' {
			continue
		}
		if st, err := root.Lstat(path[:i]); err != nil || !st.IsDir() && !st.Mode().IsRegular() {
			return nil, missing.WithCause(err)
		}
	}
	f, err := root.Open(path)
	if err != nil {
		return nil, missing.WithCause(err)
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(missing.WithCause(err), f.Close())
	}
	return f, nil
}
