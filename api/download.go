package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/klauspost/compress/gzip"
)

// download is how far a bundle's download is; it lies beside the part that has come. Broken counts the attempts that
// were cut short: a server that is away, or has not built the bundle yet, costs none.
type download struct {
	ETag   string `json:"etag"`   // strong, else empty: then nothing can be gone on with
	SHA256 string `json:"sha256"` // of the whole, as hex
	Size   int64  `json:"size"`   // of the whole; -1 when it is not known
	Broken int    `json:"broken"`

	run        RunID
	part, note string // files: what has come, and this
}

// errBroken is a download that was cut short, or brought something else than was asked for.
type errBroken struct{ why error }

func (e *errBroken) Error() string { return e.why.Error() }
func (e *errBroken) Unwrap() error { return e.why }

func brokenf(format string, args ...any) error { return &errBroken{fmt.Errorf(format, args...)} }

// accept decides from the answer's head where its body belongs, and notes what it is a part of.
func (d *download) accept(resp *http.Response, from int64) (io.Reader, error) {
	etag := resp.Header.Get("ETag")
	packed := resp.Header.Get("Content-Encoding")
	if packed == "identity" {
		packed = ""
	}
	if resp.StatusCode == http.StatusPartialContent {
		start, size, ok := contentRange(resp.Header.Get("Content-Range"))
		if !ok || start != from || packed != "" || etag != "" && etag != d.ETag || d.Size >= 0 && size >= 0 && size != d.Size {
			return nil, errors.Join(d.restart(), brokenf("the server sent another part of the bundle than was asked for"))
		}
		return resp.Body, nil
	}
	if resp.StatusCode != http.StatusOK {
		return nil, brokenf("the server answered %s", resp.Status)
	}
	// The whole, whatever was asked for: what had come before is of no use.
	if err := d.restart(); err != nil {
		return nil, err
	}
	d.SHA256 = sha256Of(resp.Header)
	if d.SHA256 == "" {
		return nil, brokenf("the answer has no %s with sha-256, so what came cannot be checked", digestHeader)
	}
	if packed != "" {
		// Something on the way packed it all the same. Then the head's sizes and tags are of the packed form.
		unpacked, err := gzip.NewReader(resp.Body)
		if err != nil || packed != "gzip" && packed != "x-gzip" {
			return nil, brokenf("the answer is packed as %s although that was not asked for", packed)
		}
		return unpacked, d.save()
	}
	d.Size = resp.ContentLength
	if !strings.HasPrefix(etag, "W/") {
		d.ETag = etag
	}
	return resp.Body, d.save()
}

// receive appends the body to the part.
func (d *download) receive(body io.Reader, moved func(done int64)) error {
	f, err := os.OpenFile(d.part, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return localFault(err)
	}
	defer f.Close() //nolint:errcheck // closed below as well; here on errors
	done := d.have()
	buf := make([]byte, 256<<10)
	for {
		n, readErr := body.Read(buf)
		if n > 0 {
			if _, err := f.Write(buf[:n]); err != nil {
				return localFault(err)
			}
			done += int64(n)
			moved(done)
		}
		switch {
		case errors.Is(readErr, io.EOF) && d.Size >= 0 && done != d.Size:
			return io.ErrUnexpectedEOF
		case errors.Is(readErr, io.EOF):
			if err := f.Close(); err != nil {
				return localFault(err)
			}
			return nil
		case readErr != nil:
			return readErr
		}
	}
}

// check compares what has come with the digest that the server named.
func (d *download) check() error {
	f, err := os.Open(d.part)
	if err != nil {
		return localFault(err)
	}
	defer f.Close() //nolint:errcheck // only read from
	sum, _, err := fileSHA256(f)
	if err != nil {
		return localFault(err)
	}
	if sum != d.SHA256 {
		return errors.Join(d.restart(), brokenf("what came has another SHA-256 than the server named"))
	}
	return nil
}

// restart drops what has come.
func (d *download) restart() error {
	d.ETag, d.Size = "", -1
	if err := os.Truncate(d.part, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return localFault(err)
	}
	return d.save()
}

func (d *download) save() error {
	b, err := json.Marshal(d)
	if err == nil {
		err = os.WriteFile(d.note+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(d.note+".new", d.note)
	}
	return localFault(err)
}

func (d *download) have() int64 {
	st, err := os.Stat(d.part)
	if err != nil {
		return 0
	}
	return st.Size()
}

func (d *download) progress() string {
	if d.Size > 0 {
		return fmt.Sprintf("%s of %s", megabytes(d.have()), megabytes(d.Size))
	}
	return megabytes(d.have())
}

func (d *download) failed(last error) error {
	return Conflictf("bundle_download_failed", "The bundle could not be downloaded in %d attempts: %v", max(d.Broken, 1), last).
		WithHint("look at the network between the server and this machine: a proxy may cut long downloads").WithCause(last)
}

// localFault is a failure of this machine's disk while something was transferred: asking the server again is no use.
func localFault(err error) error {
	switch {
	case err == nil:
		return nil
	case IsDiskFull(err):
		return Conflictf("disk_full", "No space is left on this machine's disk").WithCause(err)
	}
	return Conflictf("start_failed", "the job directory cannot be used: %v", err).WithCause(err)
}

// contentRange reads "bytes 100-199/200"; a size of * is -1.
func contentRange(h string) (start, size int64, ok bool) {
	h, ok = strings.CutPrefix(h, "bytes ")
	span, total, both := strings.Cut(h, "/")
	first, last, dash := strings.Cut(span, "-")
	if !ok || !both || !dash {
		return 0, 0, false
	}
	start, err := strconv.ParseInt(strings.TrimSpace(first), 10, 64)
	if err != nil || start < 0 {
		return 0, 0, false
	}
	end, err := strconv.ParseInt(strings.TrimSpace(last), 10, 64)
	if err != nil || end < start {
		return 0, 0, false
	}
	if total = strings.TrimSpace(total); total == "*" {
		return start, -1, true
	}
	size, err = strconv.ParseInt(total, 10, 64)
	return start, size, err == nil && end < size
}

func megabytes(n int64) string {
	if n < 10<<20 {
		return strconv.FormatFloat(float64(n)/(1<<20), 'f', 1, 64) + " MB"
	}
	return strconv.FormatInt(n>>20, 10) + " MB"
}
