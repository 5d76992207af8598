package supervisor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"potato/api"
	"potato/store"
)

// Upload is predictions on their way from an agent, or a part of them.
type Upload struct {
	SHA256 string // of the whole, as hex
	Size   int64  // of the whole; -1 when it comes in one request and is not known
	Offset int64  // where the content belongs
	Part   bool   // more may follow, or has come before
	// Content is read to its end. Interrupt makes a Read that waits return: the same upload has come on another connection.
	Content   io.Reader
	Interrupt func()
}

// uploads keeps what has come of a run's predictions in the run's folder: the database has one writer, which must not wait
// for a slow line. One upload at a time has it, and the newest wins.
type uploads struct {
	dir string
	has chan struct{} // holds one token: who takes it has the folder

	mu        sync.Mutex
	interrupt func() // of who has it
}

func newUploads(dir folder) *uploads {
	u := &uploads{dir: dir.upload(), has: make(chan struct{}, 1)}
	u.has <- struct{}{}
	return u
}

// take gets the folder, from an older request when need be.
func (u *uploads) take(ctx context.Context, interrupt func()) (release func(), err error) {
	u.mu.Lock()
	if u.interrupt != nil {
		u.interrupt()
	}
	u.mu.Unlock()
	select {
	case <-u.has:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	u.mu.Lock()
	u.interrupt = interrupt
	u.mu.Unlock()
	return func() {
		u.mu.Lock()
		u.interrupt = nil
		u.mu.Unlock()
		u.has <- struct{}{}
	}, nil
}

// uploadNote says which file the part is of.
type uploadNote struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
}

func (u *uploads) part() string { return filepath.Join(u.dir, "part") }
func (u *uploads) note() string { return filepath.Join(u.dir, "note.json") }

// underWay reads which file is being uploaded in parts and how much of it has come.
func (u *uploads) underWay() (note uploadNote, have int64) {
	b, err := os.ReadFile(u.note())
	if err != nil || json.Unmarshal(b, &note) != nil {
		return uploadNote{}, 0
	}
	if st, err := os.Stat(u.part()); err == nil {
		have = st.Size()
	}
	return note, have
}

// drop forgets what has come.
func (u *uploads) drop() error {
	if err := os.RemoveAll(u.dir); err != nil {
		return fmt.Errorf("drop an upload: %w", err)
	}
	return nil
}

// UploadOffset says how much of the run's predictions the server has.
func (d AgentDesk) UploadOffset(ctx context.Context, id api.RunID, lease string) (api.UploadOffset, error) {
	a, stored, err := d.uploader(ctx, id, lease)
	if err != nil {
		return api.UploadOffset{}, err
	}
	if stored.SHA256 != "" {
		return api.UploadOffset{Offset: stored.Bytes, Done: true}, nil
	}
	_, have := a.uploads.underWay()
	return api.UploadOffset{Offset: have}, nil
}

// uploader finds the run whose predictions the agent may bring, and the upload that was stored when there is one: of a run
// whose work has ended it is the only one that may come again.
func (d AgentDesk) uploader(ctx context.Context, id api.RunID, lease string) (*active, store.Upload, error) {
	a, holdErr := d.speaks(ctx, id, lease)
	if holdErr != nil && !(api.HasCode(holdErr, "run_over") && a != nil && a.finished()) {
		return nil, store.Upload{}, holdErr
	}
	l, err := d.s.db.LeaseOf(ctx, id)
	if err != nil {
		return nil, store.Upload{}, err
	}
	switch {
	case l == nil:
		return nil, store.Upload{}, leaseMoved(id)
	case holdErr != nil && l.Upload.SHA256 == "":
		return nil, store.Upload{}, holdErr
	case holdErr != nil:
		return a, l.Upload, nil
	}
	r, err := d.s.db.RunByID(ctx, id)
	switch {
	case err != nil:
		return nil, store.Upload{}, err
	case r.Status == api.RunBuilding:
		return nil, store.Upload{}, api.Conflictf("too_early", "The bundle of run %s is still being built, so nothing can be predicted yet", id)
	case r.NPredictions == nil:
		return a, store.Upload{}, nil
	}
	return a, l.Upload, nil
}

// Upload takes predictions, or a part of them. They are stored once the whole has come and its SHA-256 is right: all rows
// or none. Of what is refused nothing is kept; of a part that breaks off, what had come is.
func (d AgentDesk) Upload(ctx context.Context, id api.RunID, lease string, up Upload) (api.UploadOffset, error) {
	a, _, err := d.uploader(ctx, id, lease)
	if err != nil {
		return api.UploadOffset{}, err
	}
	release, err := a.uploads.take(ctx, up.Interrupt)
	if err != nil {
		return api.UploadOffset{}, err
	}
	defer release()
	a, stored, err := d.uploader(ctx, id, lease) // again: the same may have been stored meanwhile
	switch {
	case err != nil:
		return api.UploadOffset{}, err
	case stored.SHA256 != "" && stored.SHA256 == up.SHA256:
		return api.UploadOffset{Offset: stored.Bytes, Done: true}, nil
	case a.finished():
		return api.UploadOffset{}, runOver(id)
	case a.ending():
		return api.UploadOffset{}, api.Conflictf("run_stopping", "Run %s is being stopped and takes no predictions", id)
	}
	limit := d.s.o.Config.ModelTraining.MaxPredictionsMB << 20
	if up.Size > limit {
		return api.UploadOffset{}, errors.Join(d.s.tooLarge(up.Size), a.uploads.drop())
	}
	at, err := a.uploads.place(up)
	if err != nil {
		return api.UploadOffset{}, err
	}
	have, sum, err := a.uploads.receive(up, at, limit)
	switch {
	case isDiskFull(err):
		e := runError(err, "", "")
		a.fail(e)
		return api.UploadOffset{}, api.Conflictf(e.Code, "%s", e.Message).WithHint("%s", e.Hint).WithCause(errors.Join(err, a.uploads.drop()))
	case api.HasCode(err, "upload_broken"):
		if !up.Part {
			err = errors.Join(err, a.uploads.drop())
		}
		return api.UploadOffset{}, err
	case errors.Is(err, errTooLarge):
		return api.UploadOffset{}, errors.Join(d.s.tooLarge(have), a.uploads.drop())
	case err != nil:
		return api.UploadOffset{}, errors.Join(err, a.uploads.drop())
	case up.Part && have < up.Size:
		return api.UploadOffset{Offset: have}, nil
	}
	if err := d.whole(ctx, a, up, have, sum); err != nil {
		return api.UploadOffset{}, errors.Join(err, a.uploads.drop())
	}
	return api.UploadOffset{Offset: have, Done: true}, nil
}

// place finds out where the content belongs, and makes room for a file that is begun.
func (u *uploads) place(up Upload) (at int64, err error) {
	note, have := u.underWay()
	same := note == uploadNote{up.SHA256, up.Size} && note.SHA256 != ""
	switch {
	case up.Part && same && up.Offset == have:
		return have, nil
	case up.Part && same:
		return 0, api.Conflictf("upload_offset", "The upload goes on at byte %d, not %d", have, up.Offset).
			WithHint("HEAD tells the offset in Upload-Offset")
	case up.Part && up.Offset > 0 && note.SHA256 == "":
		return 0, api.Conflictf("upload_offset", "The upload begins at byte 0, not %d", up.Offset).
			WithHint("HEAD tells the offset in Upload-Offset")
	case up.Part && up.Offset > 0:
		return 0, errors.Join(api.Invalidf("upload_changed", "What has come before is of another file: its size or its SHA-256 is not the one named now").
			WithHint("nothing of it is kept; upload the file from its beginning"), u.drop())
	}
	if err := u.drop(); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(u.dir, 0o700); err != nil {
		return 0, fmt.Errorf("begin an upload: %w", err)
	}
	b, err := json.Marshal(uploadNote{up.SHA256, up.Size})
	if err != nil {
		return 0, err
	}
	if !up.Part {
		return 0, nil
	}
	return 0, writeFile(u.note(), b)
}

var errTooLarge = errors.New("over the limit")

// receive appends the content and returns how much there is, with its SHA-256 when that was computed on the way.
func (u *uploads) receive(up Upload, at, limit int64) (have int64, sum string, err error) {
	f, err := os.OpenFile(u.part(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return at, "", fmt.Errorf("take an upload: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if up.Part {
		limit = min(limit, up.Size)
	}
	var h hash.Hash
	to := io.NewOffsetWriter(f, at)
	var w io.Writer = to
	if at == 0 {
		h = sha256.New()
		w = io.MultiWriter(to, h)
	}
	content := &marked{r: up.Content}
	n, err := io.CopyBuffer(onlyWriter{w}, io.LimitReader(content, limit-at+1), make([]byte, 256<<10))
	have = at + n
	switch {
	case content.err != nil:
		return have, "", content.err
	case err != nil:
		return have, "", fmt.Errorf("take an upload: %w", err)
	case have > limit && up.Part:
		return have, "", api.Invalidf("upload_too_long", "More has come than the %d bytes that Upload-Length named", up.Size)
	case have > limit:
		return have, "", errTooLarge
	}
	if h != nil {
		sum = hex.EncodeToString(h.Sum(nil))
	}
	return have, sum, nil
}

// marked tells a failure to read from one to write.
type marked struct {
	r   io.Reader
	err error
}

func (m *marked) Read(b []byte) (int, error) {
	n, err := m.r.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

// onlyWriter hides ReadFrom, which would take no heed of our buffer.
type onlyWriter struct{ io.Writer }

// whole checks a file that has come to its end, stores it and keeps it among the run's artifacts.
func (d AgentDesk) whole(ctx context.Context, a *active, up Upload, size int64, sum string) error {
	f, err := os.Open(a.uploads.part())
	if err != nil {
		return fmt.Errorf("read an upload: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read from
	if sum == "" {
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return fmt.Errorf("read an upload: %w", err)
		}
		if _, err := f.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read an upload: %w", err)
		}
		sum = hex.EncodeToString(h.Sum(nil))
	}
	if sum != up.SHA256 {
		return api.Invalidf("digest_mismatch", "The predictions that came have another SHA-256 than Repr-Digest names").
			WithHint("the digest is of the file as it is before gzip; nothing of it was kept")
	}
	// It goes on when the agent's connection breaks: asked again, the answer is there.
	ctx = context.WithoutCancel(ctx)
	if err := d.s.storePredictions(ctx, a, f); err != nil {
		if isDiskFull(err) {
			e := runError(err, "", "")
			return api.Conflictf(e.Code, "%s", e.Message).WithHint("%s", e.Hint).WithCause(err)
		}
		return err
	}
	if err := d.s.db.KeepUpload(ctx, a.id, store.Upload{SHA256: sum, Bytes: size}); err != nil {
		return err
	}
	if err := os.Rename(a.uploads.part(), filepath.Join(d.s.folder(a.id).artifacts(), predictionsFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.s.log.Warn("cannot keep the predictions file", "run", a.id, "err", err)
	}
	return a.uploads.drop()
}

// predictionsFile is a run's predictions among its artifacts.
const predictionsFile = "predictions.jsonl"
