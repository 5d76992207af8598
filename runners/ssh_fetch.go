package runners

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners/hosts"
)

//go:embed ssh_fetch.py
var fetchProgram string

// copyStall is how long a copy may send nothing (H7).
const copyStall = 180 * time.Second

// Fetch implements Fetcher: predictions are here already, so whatever goes wrong the run keeps its result (H7).
func (s *SSH) Fetch(ctx context.Context, j Job, h api.Handle, success bool) (here bool, err error) {
	b, _ := s.o.Config.ModelTraining.Backends.ByName(j.Backend)
	c := s.kept(j.RunID)
	for left := fetchTries; ; left-- {
		if c == nil {
			if c, err = hosts.Dial(ctx, targetOf(b), s.o.Hosts); err != nil {
				return false, err
			}
		}
		here, err = s.fetchOver(ctx, c, b, j, h, success)
		_ = c.Close() // nothing is lost with it
		c = nil
		// What broke off goes on from where it was; what came damaged comes anew.
		if err == nil || left == 1 || ctx.Err() != nil || !api.HasCode(err, "ssh_unreachable") && !api.HasCode(err, "bad_artifact") {
			return here, err
		}
	}
}

// fetchTries is how often a copy is taken up before the run goes on without the rest.
const fetchTries = 4

func (s *SSH) fetchOver(ctx context.Context, c *hosts.Conn, b project.Backend, j Job, h api.Handle, success bool) (here bool, err error) {
	a, err := c.Run(ctx, hosts.Script{Text: "test -d " + hosts.Quote(h.Dir+"/artifacts")})
	if err != nil {
		return false, err
	}
	stays := false
	if success && b.FetchArtifacts && a.Code == 0 {
		large, err := s.fetch(ctx, c, b, j, h)
		if err != nil {
			return false, err
		}
		for _, f := range large {
			stays = true
			j.warn(fmt.Sprintf("%s (%d MB) is larger than max_artifact_mb and stays on %s in %s/artifacts", f.path, f.size>>20, b.Host, h.Dir))
		}
	}
	stays = stays || success && !b.FetchArtifacts
	return !stays, s.clean(ctx, c, b, h, stays)
}

// clean removes the job directory, or all of it but the artifacts that stay.
func (s *SSH) clean(ctx context.Context, c *hosts.Conn, b project.Backend, h api.Handle, stays bool) error {
	if b.KeepRemote || !strings.Contains(h.Dir, "/jobs/") {
		return nil
	}
	text := "rm -rf " + hosts.Quote(h.Dir)
	if stays {
		text = "cd " + hosts.Quote(h.Dir) + " && for f in * .[!.]*; do [ \"$f\" = artifacts ] || rm -rf \"./$f\"; done"
	}
	a, err := c.Run(ctx, hosts.Script{Text: text})
	if err == nil && a.Code != 0 {
		err = scriptFailed(b.Host, "remove "+h.Dir, a)
	}
	return err
}

type sizedFile struct {
	path string
	size int64
}

// fetch copies the artifacts, each checked against the digest of the file it was sent from.
func (s *SSH) fetch(ctx context.Context, c *hosts.Conn, b project.Backend, j Job, h api.Handle) (large []sizedFile, err error) {
	dir := j.artifacts()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // what was written was closed
	there, err := sizesIn(root)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var moved atomic.Int64
	stall := orDuration(s.o.CopyStall, copyStall)
	watchdog := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	out, in := io.Pipe()
	env := s.env(b)
	env["fetch"] = fetchProgram
	done := make(chan error, 1)
	go func() {
		a, err := c.Run(ctx, hosts.Script{
			Text: `"$(sed -n 's/.*"python":"\([^"]*\)".*/\1/p' ` + hosts.Quote(h.Dir+"/plan.json") + `)" -c "$fetch"`, Env: env, Stdout: in,
			Stdin: jsonLine(map[string]any{"dir": h.Dir + "/artifacts", "most": b.MaxArtifactMB << 20, "there": there}),
		})
		if err == nil && a.Code != 0 {
			err = scriptFailed(b.Host, "send the artifacts", a)
		}
		_ = in.CloseWithError(errors.Join(err, io.EOF))
		done <- err
	}()
	r := &receiver{root: root, in: bufio.NewReaderSize(out, 1<<20), moved: func(n int64) {
		moved.Add(n)
		watchdog.Reset(stall)
	}}
	told := time.Time{}
	r.progress = func(got, all int64) {
		if time.Since(told) > time.Second {
			told = time.Now()
			j.Step(fmt.Sprintf("copying the model from %s: %d of %d MB", b.Host, got>>20, all>>20))
		}
	}
	err = r.receive()
	_ = out.CloseWithError(io.ErrClosedPipe)
	runErr := <-done
	switch {
	case errors.Is(context.Cause(ctx), errStalled):
		return nil, api.Unavailablef("copy_stalled", "The copy from %s sent nothing for %g s", b.Host, stall.Seconds()).
			WithHint("predictions are saved; only model files are missing from `artifacts/`")
	case err != nil && runErr != nil && api.AsError(runErr).Kind != api.KindInternal:
		return nil, runErr
	}
	return r.large, err
}

var errStalled = errors.New("nothing came")

func sizesIn(root *os.Root) (map[string]int64, error) {
	sizes := map[string]int64{}
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		st, err := d.Info()
		sizes[name] = st.Size()
		return err
	})
	return sizes, err
}

// receiver reads what ssh_fetch.py sends.
type receiver struct {
	root     *os.Root
	in       *bufio.Reader
	moved    func(n int64)
	progress func(got, all int64)
	large    []sizedFile
	got, all int64
	buffer   []byte
}

type fetchRecord struct {
	Files  int      `json:"files"`
	Bytes  int64    `json:"bytes"`
	Large  [][2]any `json:"large"`
	Path   string   `json:"path"`
	Size   int64    `json:"size"`
	Offset int64    `json:"offset"`
	SHA256 string   `json:"sha256"`
	End    bool     `json:"end"`
}

func (r *receiver) receive() error {
	first, err := r.record()
	if err != nil {
		return err
	}
	r.all = first.Bytes
	for _, l := range first.Large {
		name, _ := l[0].(string)
		size, _ := l[1].(float64)
		r.large = append(r.large, sizedFile{api.Printable(name), int64(size)})
	}
	for {
		rec, err := r.record()
		if err != nil || rec.End {
			return err
		}
		if err := r.file(rec); err != nil {
			return err
		}
	}
}

func (r *receiver) record() (rec fetchRecord, err error) {
	line, err := r.in.ReadSlice('\n')
	if err != nil {
		return rec, fmt.Errorf("read the artifacts: %w", err)
	}
	return rec, json.Unmarshal(line, &rec)
}

// file takes one file. What is there of it is hashed again: a copy that goes on must be as good as a whole one.
func (r *receiver) file(rec fetchRecord) error {
	if !fs.ValidPath(rec.Path) || rec.Size < rec.Offset || rec.Offset < 0 {
		return api.Unavailablef("bad_artifact", "the host sent a file of the name %q, which is none", api.Printable(rec.Path))
	}
	if dir := path.Dir(rec.Path); dir != "." {
		if err := r.root.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	flags := os.O_RDWR | os.O_CREATE
	if rec.Offset == 0 {
		flags |= os.O_TRUNC
	}
	f, err := r.root.OpenFile(rec.Path, flags, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	if rec.Offset > 0 {
		if _, err = io.CopyN(sum, f, rec.Offset); err == nil {
			err = f.Truncate(rec.Offset)
		}
	}
	if r.buffer == nil { // one for all files: there may be thousands
		r.buffer = make([]byte, 256<<10)
	}
	for left := rec.Size - rec.Offset; left > 0 && err == nil; {
		var n int
		n, err = io.ReadFull(r.in, r.buffer[:min(left, int64(len(r.buffer)))])
		if n > 0 {
			_, writeErr := f.Write(r.buffer[:n])
			err = errors.Join(err, writeErr)
			sum.Write(r.buffer[:n])
			left -= int64(n)
			r.got += int64(n)
			r.moved(int64(n))
			r.progress(r.got, r.all)
		}
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	rec2, err := r.record()
	if err == nil && rec2.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
		// From its beginning, the next time.
		return errors.Join(api.Unavailablef("bad_artifact", "%s arrived damaged", api.Printable(rec.Path)).WithHint("copy the artifacts again"), r.root.Remove(rec.Path))
	}
	return err
}
