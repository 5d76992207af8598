package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"time"

	"potato/api"
)

const (
	bundleItems = 4800
	bundleText  = 64 << 10 // 300 MB in all, which no packer makes much smaller
)

// measureBundle downloads a large bundle as an agent does, whole and with a cut after a third, and the same file from nginx
// with sendfile. What comes is dropped: the disk would be all that is measured.
func measureBundle(ctx context.Context, b *bench) (rows []row, err error) {
	study, token, err := b.writeAgentStudy(ctx, "bundle", smallStudy)
	if err != nil {
		return nil, err
	}
	if err := writeLongItems(filepath.Join(study, "data", "items.jsonl")); err != nil {
		return nil, err
	}
	s, err := b.startOurs(ctx, study)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	agent, err := s.newAgent(token)
	if err != nil {
		return nil, err
	}
	id, err := s.postToAgent(ctx)
	if err != nil {
		return nil, err
	}
	job, err := claim(ctx, agent, "agent")
	if err != nil {
		return nil, err
	}
	if err := s.running(ctx, agent, job); err != nil {
		return nil, err
	}
	defer heartbeats(ctx, agent, job)()
	n, err := b.startNginx(ctx, s.runFolder(trained{RunID: string(id)}))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.stop()) }()

	ours := source{url: s.url + "/api/training/jobs/" + string(job.RunID) + "/bundle", token: token, lease: job.Lease}
	theirs := source{url: n.url + "/bundle.tar.gz"}
	whole := row{Name: "bundle", What: "bundle of 300 MB downloaded, MB a second", Unit: "MB/s", Against: "nginx", Bar: atLeast(0.8, "F2")}
	resumed := row{Name: "bundle-resume", What: "the same, gone on with by range after a third", Unit: "MB/s", Against: "nginx", Bar: atLeast(0.8, "F2")}
	for i := range b.repeats + 1 {
		for _, m := range []struct {
			row  *row
			cuts bool
		}{{&whole, false}, {&resumed, true}} {
			nginx, err := theirs.download(ctx, m.cuts)
			if err != nil {
				return nil, fmt.Errorf("nginx: %w", err)
			}
			own, err := ours.download(ctx, m.cuts)
			if err != nil {
				return nil, err
			}
			if i == 0 {
				continue // the file comes into the disk cache
			}
			m.row.Peer, m.row.Ours = append(m.row.Peer, nginx), append(m.row.Ours, own)
			b.say("%s: nginx %.0f MB/s, ours %.0f MB/s", m.row.Name, nginx, own)
		}
	}
	return []row{whole, resumed}, givenUp(ctx, agent, job)
}

// writeLongItems writes as many items as the smallest study has labels for, and many more, with long random texts.
func writeLongItems(path string) error {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
	return writeLines(path, func(w *bufio.Writer) error {
		r := rand.New(rand.NewPCG(4, 0))
		text := make([]byte, bundleText)
		for i := range bundleItems {
			for j := 0; j < len(text); j += 8 {
				for k, bits := 0, r.Uint64(); k < 8; k, bits = k+1, bits>>6 {
					text[j+k] = letters[bits&63]
				}
			}
			if _, err := fmt.Fprintf(w, `{"id":"%s","text":"%s"}`+"\n", itemID(i), text); err != nil {
				return err
			}
		}
		return nil
	})
}

// source is where a bundle comes from.
type source struct{ url, token, lease string }

// download fetches the whole and returns the speed in MB a second; with cut it breaks off after a third and goes on by
// range on a new connection, as after a cut line.
func (s source) download(ctx context.Context, cut bool) (float64, error) {
	begin := time.Now()
	var size, got int64
	etag := ""
	for got == 0 || got < size {
		n, total, tag, err := s.part(ctx, got, etag, cut && got == 0)
		if err != nil {
			return 0, err
		}
		size, etag = total, tag
		got += n
	}
	return float64(got) / 1e6 / time.Since(begin).Seconds(), nil
}

// part fetches from a place on, to the end or, with cut, to a third of the whole.
func (s source) part(ctx context.Context, from int64, etag string, cut bool) (n, total int64, tag string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	hc, err := api.NewHTTPClient("")
	if err != nil {
		return 0, 0, "", err
	}
	defer hc.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, nil)
	if err != nil {
		return 0, 0, "", err
	}
	request.Header.Set("Accept-Encoding", "identity")
	if s.token != "" {
		request.Header.Set("Authorization", "Bearer "+s.token)
		request.Header.Set("Potato-Lease", s.lease)
	}
	want := http.StatusOK
	if from > 0 {
		want = http.StatusPartialContent
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
		request.Header.Set("If-Range", etag)
	}
	answer, err := hc.Do(request)
	if err != nil {
		return 0, 0, "", err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read, or is to be cut
	if answer.StatusCode != want || answer.ContentLength < 1 {
		return 0, 0, "", fmt.Errorf("%s answers %s with %d bytes", s.url, answer.Status, answer.ContentLength)
	}
	total, tag = from+answer.ContentLength, answer.Header.Get("ETag")
	body := io.Reader(answer.Body)
	if cut {
		body = io.LimitReader(body, total/3)
	}
	n, err = io.CopyBuffer(discard{}, body, make([]byte, 256<<10))
	return n, total, tag, err
}

// discard takes everything in the pieces that it comes in, without the small buffer of io.Discard's own.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
