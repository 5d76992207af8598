package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// pollEvery is how often a run is asked after, on both sides alike.
const pollEvery = 20 * time.Millisecond

// trained is what one run came to, in the words that both products share.
type trained struct {
	RunID   string `json:"run_id"`
	Status  string `json:"status"`
	Error   string `json:"error"`
	NTrain  int    `json:"n_train"`
	NVal    int    `json:"n_val"`
	NTest   int    `json:"n_test"`
	Digest  string `json:"bundle_digest"`
	elapsed time.Duration
	bundled time.Duration // from the POST until the worker had its bundle
}

// train posts a run and waits for its success. The clock starts before the POST.
func (s *server) train(ctx context.Context, limit time.Duration) (trained, error) {
	var r trained
	begin := time.Now()
	if err := s.call(ctx, http.MethodPost, "runs", `{"trainer":"sklearn-text","schemas":["sentiment"]}`, &r); err != nil {
		return r, err
	}
	return s.await(ctx, r, begin, limit)
}

// await waits for the success of a run that was posted when the clock began.
func (s *server) await(ctx context.Context, r trained, begin time.Time, limit time.Duration) (trained, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		if err := s.call(ctx, http.MethodGet, "runs/"+r.RunID, "", &r); err != nil {
			if ctx.Err() != nil {
				return r, fmt.Errorf("run %s is still %s after %s; the server's log is %s", r.RunID, r.Status, limit, s.log)
			}
			return r, err
		}
		if r.bundled == 0 && !slices.Contains([]string{"queued", "building"}, r.Status) {
			r.bundled = time.Since(begin)
		}
		switch r.Status {
		case "success":
			r.elapsed = time.Since(begin)
			return r, nil
		case "error", "cancelled":
			return r, fmt.Errorf("run %s ended as %s: %s; the server's log is %s", r.RunID, r.Status, r.Error, s.log)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pollEvery):
		}
	}
}

// call asks the admin API and reads its answer into what.
func (s *server) call(ctx context.Context, method, path, body string, what any) error {
	request, err := http.NewRequestWithContext(ctx, method, s.url+"/admin/training/api/"+path, bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	request.Header.Set("X-API-Key", adminKey)
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s answers %s", method, request.URL, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(what)
}

// predictions counts the lines of a run's predictions.jsonl; both products keep it in the same place.
func (s *server) predictions(r trained) (int, error) {
	data, err := os.ReadFile(filepath.Join(s.runFolder(r), "artifacts", "predictions.jsonl"))
	return bytes.Count(data, []byte("\n")), err
}

func (s *server) runFolder(r trained) string {
	return filepath.Join(s.study, "annotation_output", "training", "runs", r.RunID)
}

// annotate makes the annotators' files look saved a moment ago, so that no server trains on what it remembers of them.
func (s *server) annotate() error {
	files, err := filepath.Glob(filepath.Join(s.study, "annotation_output", "*", "user_state.json"))
	if err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("%s has no annotators", s.study), err)
	}
	for _, f := range files {
		if err := os.Chtimes(f, time.Time{}, time.Now()); err != nil {
			return err
		}
	}
	return nil
}
