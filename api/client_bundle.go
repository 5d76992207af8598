package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	downloads        = 5                // attempts of one bundle's download, over all restarts of the agent
	downloadPatience = 10 * time.Minute // how long a download may stand still while the rest of the server answers
	longestWait      = time.Minute      // of a Retry-After that is obeyed
)

// Bundle implements agent.Desk: it downloads the bundle and unpacks it into dir/bundle. It goes on where an earlier call
// has stopped.
func (c *Client) Bundle(ctx context.Context, job Job, dir string) (string, error) {
	folder := filepath.Join(dir, bundleName)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil // it appears whole
	}
	archive := filepath.Join(dir, "bundle.tar.gz")
	if _, err := os.Stat(archive); errors.Is(err, fs.ErrNotExist) {
		d := &download{run: job.RunID, part: archive + ".part", note: archive + ".json", Size: -1}
		if b, err := os.ReadFile(d.note); err == nil {
			_ = json.Unmarshal(b, d) // a note that cannot be read is like none
		}
		if err := c.download(ctx, job, d); err != nil {
			return "", err
		}
		if err := os.Rename(d.part, archive); err != nil {
			return "", localFault(err)
		}
		_ = os.Remove(d.note)
	}
	if err := unpackFile(ctx, archive, folder); err != nil {
		return "", err
	}
	if err := os.Remove(archive); err != nil {
		return "", localFault(err)
	}
	return folder, nil
}

// download brings the whole archive into d.part, in as many attempts as it may take.
func (c *Client) download(ctx context.Context, job Job, d *download) error {
	had, since := d.have(), time.Now()
	for pause := time.Duration(0); ; {
		err := c.attempt(ctx, job, d)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var broken *errBroken
		if errors.As(err, &broken) {
			d.Broken++
			if err := d.save(); err != nil {
				return err
			}
			if d.Broken >= downloads {
				return d.failed(broken.why)
			}
		} else if e := AsError(err); e.Kind != KindUnavailable && e.Kind != KindTooMany && e.Kind != KindInternal {
			return err
		}
		retrying(ctx, bundleName, err)
		if have := d.have(); have != had {
			had, since = have, time.Now()
		}
		wait := min(RetryAfter(err), longestWait)
		if wait > 0 {
			since = time.Now() // it was told to wait
			wait += rand.N(wait / 4)
		} else {
			pause = min(max(2*pause, orElse(c.RetryAfter, defaultPause)), longestPause)
			wait = pause/2 + rand.N(pause)
		}
		if time.Since(since) > downloadPatience {
			return d.failed(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// attempt asks for what is missing, or for the whole when that cannot be told apart from another bundle.
func (c *Client) attempt(ctx context.Context, job Job, d *download) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := orElse(c.StallTimeout, defaultStall)
	watch := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer watch.Stop()
	req, err := c.request(ctx, http.MethodGet, jobPath(job, bundleName), job.Lease, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/gzip, "+typeProblem)
	req.Header.Set("Accept-Encoding", "identity") // of a packed answer no range could be asked for
	from := d.have()
	if from > 0 && d.ETag != "" {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		req.Header.Set("If-Range", d.ETag)
	}
	resp, err := c.do(req)
	if statusOf(err) == http.StatusRequestedRangeNotSatisfiable {
		if d.Size == from && from > 0 { // an earlier attempt ended right before it would have been checked
			return d.check()
		}
		return errors.Join(d.restart(), brokenf("the server has less of the bundle than had come already"))
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	body, err := d.accept(resp, from)
	if err != nil {
		return err
	}
	err = d.receive(body, func(done int64) {
		watch.Reset(stall)
		if c.OnTransfer != nil {
			c.OnTransfer(d.run, bundleName, done, d.Size)
		}
	})
	var disk *Error
	switch {
	case errors.As(err, &disk):
		return disk
	case err != nil && ctx.Err() != nil && !errors.Is(context.Cause(ctx), errStalled):
		return ctx.Err()
	case err != nil:
		return brokenf("%w after %s", c.plain(ctx, err), d.progress())
	}
	return d.check()
}

// plain is a broken transfer's cause in words.
func (c *Client) plain(ctx context.Context, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) {
		return errors.New("the connection was cut")
	}
	return c.explain(ctx, err)
}
