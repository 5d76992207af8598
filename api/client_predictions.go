package api

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzip"
)

const (
	largestChunk  = 8 << 20
	smallestChunk = 64 << 10
	maxDisputes   = 5 // how often the server may name another offset than ours
)

// upload is one call of Predictions.
type upload struct {
	c    *Client
	job  Job
	file *os.File
	size int64
	sum  string // SHA-256 of the file, as hex
}

// Predictions implements agent.Desk. The file goes up whole and packed; when something between us and the server
// refuses that for its size, or cuts it, it goes up in chunks, which an interrupted call goes on with.
func (c *Client) Predictions(ctx context.Context, job Job, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return localFault(err)
	}
	defer f.Close() //nolint:errcheck // only read from
	u := &upload{c: c, job: job, file: f}
	packed, err := u.pack(filepath.Dir(path))
	if err != nil {
		return localFault(err)
	}
	defer packed.Close() //nolint:errcheck // nobody reads it afterwards
	if had := u.offset(ctx); had > 0 {
		err := u.chunks(ctx, had, largestChunk)
		if !isInvalid(err) {
			return err
		}
		// What the server had was of another file: the worker ran twice. The whole replaces it.
	}
	st, err := packed.Stat()
	if err != nil {
		return localFault(err)
	}
	err = u.put(ctx, packed, st.Size())
	var cut *errCut
	switch {
	case HasCode(err, codeProxyLimit), errors.As(err, &cut) && ctx.Err() == nil:
		retrying(ctx, predictionsDoc, err)
		return u.chunks(ctx, 0, min(largestChunk, max(smallestChunk, st.Size()/2)))
	case errors.As(err, &cut):
		return cut.err
	}
	return err
}

func isInvalid(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == KindInvalid
}

// pack writes the file, packed, to one without a name on the same disk, and takes its size and digest on the way.
func (u *upload) pack(dir string) (_ *os.File, err error) {
	packed, err := os.CreateTemp(dir, ".predictions-*.gz")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, packed.Close())
		}
	}()
	if err := os.Remove(packed.Name()); err != nil {
		return packed, err
	}
	w, err := gzip.NewWriterLevel(packed, gzip.BestSpeed)
	if err != nil {
		return nil, err
	}
	u.sum, u.size, err = fileSHA256(io.TeeReader(u.file, w))
	return packed, errors.Join(err, w.Close())
}

// offset is how much the server has of an upload in chunks. When it does not say, the whole is sent, and the answer to
// that says what is wrong.
func (u *upload) offset(ctx context.Context) int64 {
	ctx, cancel := context.WithTimeoutCause(ctx, u.c.callTimeout(), errNoAnswer)
	defer cancel()
	req, err := u.c.request(ctx, http.MethodHead, jobPath(u.job, predictionsDoc), u.job.Lease, nil)
	if err != nil {
		return 0
	}
	resp, err := u.c.do(req)
	if err != nil {
		return 0
	}
	_ = resp.Body.Close() // a HEAD has none
	n, err := strconv.ParseInt(resp.Header.Get("Upload-Offset"), 10, 64)
	if err != nil || n < 0 || n > u.size {
		return 0
	}
	return n
}

func (u *upload) put(ctx context.Context, packed *os.File, size int64) error {
	_, err := u.send(ctx, http.MethodPut, http.Header{"Content-Encoding": {"gzip"}}, stretch{packed, 0, size, size})
	return err
}

// chunks sends the file from the offset on, in ever smaller pieces while they are refused or cut.
func (u *upload) chunks(ctx context.Context, at, size int64) error {
	for disputes := 0; ; {
		n := min(size, u.size-at)
		next, done, err := u.patch(ctx, at, n)
		var cut *errCut
		switch {
		case err == nil && (done || next == u.size && next == at+n):
			return nil
		case err == nil && next > at:
			at = next
		case err == nil, isConflict(err):
			// Another offset than ours: an answer was lost on the way.
			had := u.offset(ctx)
			if disputes++; disputes > maxDisputes || had == at && err != nil {
				return orError(err, Unavailablef(codeUnreachable, "%s does not take the predictions from byte %d on", u.c.host(), at))
			}
			at = had
		case HasCode(err, codeProxyLimit) && size <= smallestChunk:
			return tooSmall(u.c.host()).WithCause(err)
		case HasCode(err, codeProxyLimit):
			retrying(ctx, predictionsDoc, err)
			size = max(size/2, smallestChunk)
		case errors.As(err, &cut):
			had := u.offset(ctx)
			if had <= at && (size <= smallestChunk || ctx.Err() != nil) {
				return cut.err
			}
			retrying(ctx, predictionsDoc, cut.err)
			if had <= at { // else only the answer was lost
				size = max(size/2, smallestChunk)
			}
			at = max(at, had)
		default:
			return err
		}
	}
}

func (u *upload) patch(ctx context.Context, at, n int64) (next int64, done bool, err error) {
	header := http.Header{"Upload-Offset": {strconv.FormatInt(at, 10)}, "Upload-Length": {strconv.FormatInt(u.size, 10)}}
	answer, err := u.send(ctx, http.MethodPatch, header, stretch{u.file, at, n, u.size})
	if err != nil {
		return 0, false, err
	}
	var said UploadOffset
	if json.Unmarshal(answer, &said) != nil {
		return 0, false, notTheServer("it does not say how much of the predictions it has")
	}
	return said.Offset, said.Done, nil
}

// stretch is a part of a file, of the total that the upload is.
type stretch struct {
	file         *os.File
	at, n, total int64
}

// errCut is a request whose body was under way when the connection broke: perhaps because of its size.
type errCut struct{ err error }

func (e *errCut) Error() string { return e.err.Error() }
func (e *errCut) Unwrap() error { return e.err }

// send sends a stretch and lets it take as long as something moves.
func (u *upload) send(ctx context.Context, method string, header http.Header, s stretch) ([]byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall, store := orElse(u.c.StallTimeout, defaultStall), orElse(u.c.StoreTimeout, defaultStore)
	watch := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer watch.Stop()
	req, err := u.c.request(ctx, method, jobPath(u.job, predictionsDoc), u.job.Lease, nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		req.Header[name] = values
	}
	req.Header.Set("Content-Type", typeNDJSON)
	req.Header.Set(digestHeader, reprDigest(u.sum))
	var sent atomic.Int64
	if s.n > 0 {
		req.GetBody = func() (io.ReadCloser, error) {
			r := io.NewSectionReader(s.file, s.at, s.n)
			return io.NopCloser(readerFunc(func(p []byte) (int, error) {
				n, err := r.Read(p)
				if sent.Add(int64(n)) >= s.n { // now it is the server's turn
					watch.Reset(store)
				} else {
					watch.Reset(stall)
				}
				if n > 0 && u.c.OnTransfer != nil {
					u.c.OnTransfer(u.job.RunID, predictionsDoc, s.at+min(sent.Load(), s.n), s.total)
				}
				return n, err
			})), nil
		}
		req.ContentLength = s.n
		req.Header.Set("Expect", "100-continue") // a refusal comes before the body, not in the midst of it
	}
	answer, err := u.exchange(req)
	if statusOf(err) == http.StatusExpectationFailed {
		req.Header.Del("Expect")
		answer, err = u.exchange(req)
	}
	if err != nil && sent.Load() > 0 && statusOf(err) == 0 && !errors.Is(context.Cause(ctx), errStalled) {
		return nil, &errCut{err}
	}
	return answer, err
}

func (u *upload) exchange(req *http.Request) (answer []byte, err error) {
	if req.GetBody != nil {
		if req.Body, err = req.GetBody(); err != nil {
			return nil, localFault(err)
		}
	}
	resp, err := u.c.do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if answer, err = io.ReadAll(io.LimitReader(resp.Body, maxProblem)); err != nil {
		return nil, u.c.explain(req.Context(), err)
	}
	return answer, nil
}

func isConflict(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == KindConflict && e.Code != "lease_moved" && e.Code != "too_early"
}

func orError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

func tooSmall(host string) *Error {
	return TooLargef("predictions_too_large", "The predictions could not be uploaded: something between this machine and %s refuses even requests of %d KiB",
		host, smallestChunk>>10).
		WithHint("when nginx is in front of the server, raise `client_max_body_size` there, for instance to 8m")
}
