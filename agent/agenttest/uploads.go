package agenttest

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strconv"

	"potato/api"
)

// predictions takes a run's predictions, whole or in chunks.
func (s *Server) predictions(w http.ResponseWriter, r *http.Request, run *held) {
	s.mu.Lock()
	had := int64(len(run.part))
	if run.Predictions != nil {
		had = int64(len(run.Predictions))
	}
	s.mu.Unlock()
	if r.Method == http.MethodHead {
		w.Header().Set("Upload-Offset", strconv.FormatInt(had, 10))
		w.WriteHeader(http.StatusOK)
		return
	}
	var body io.Reader = r.Body
	if r.Header.Get("Content-Encoding") == "gzip" {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			problem(w, http.StatusBadRequest, "bad_request", "the predictions are not packed as they say")
			return
		}
		body = unpacked
	}
	content, err := io.ReadAll(body)
	if err != nil {
		problem(w, http.StatusBadRequest, "bad_request", "the upload breaks off")
		return
	}
	s.change(func() { run.Uploads = append(run.Uploads, r.Method+" "+strconv.FormatInt(r.ContentLength, 10)) })
	if r.Method == http.MethodPatch {
		at, _ := strconv.ParseInt(r.Header.Get("Upload-Offset"), 10, 64)
		total, _ := strconv.ParseInt(r.Header.Get("Upload-Length"), 10, 64)
		done := run.Predictions != nil && at == total
		if at != had && !done {
			problem(w, http.StatusConflict, "upload_offset", "the upload goes on elsewhere")
			return
		}
		content = slices.Concat(run.part, content)
		if int64(len(content)) < total && !done {
			s.change(func() { run.part = content })
			write(w, http.StatusOK, api.UploadOffset{Offset: int64(len(content))})
			return
		}
		if done {
			content = run.Predictions
		}
	}
	s.change(func() { run.part = nil })
	sum := sha256.Sum256(content)
	switch {
	case r.Header.Get("Repr-Digest") != "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":":
		problem(w, http.StatusUnprocessableEntity, "digest_mismatch", "the predictions have another SHA-256 than they say")
	case s.MaxPredictions > 0 && int64(len(content)) > s.MaxPredictions:
		problem(w, http.StatusRequestEntityTooLarge, "predictions_too_large", "the predictions are larger than max_predictions_mb allows")
	default:
		s.change(func() { run.Predictions = content })
		write(w, http.StatusOK, api.UploadOffset{Offset: int64(len(content)), Done: true})
	}
}
