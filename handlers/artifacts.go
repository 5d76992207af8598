package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"potato/api"
)

type getArtifactInput struct {
	RunPath
	Path string `query:"path" required:"true" minLength:"1" maxLength:"1000" example:"model_card.json" doc:"As listRunArtifacts gives it"`
}

func (h *Handlers) registerArtifacts(a huma.API) {
	huma.Register(a, operation(http.MethodGet, "/runs/{run_id}/artifacts", "listRunArtifacts", "A run's model files", "artifacts",
		http.StatusNotFound), h.listRunArtifacts)

	again := operation(http.MethodPost, "/runs/{run_id}/artifacts", "copyRunArtifacts", "Copy a run's model files here again", "artifacts",
		http.StatusNotFound, http.StatusConflict)
	again.DefaultStatus = http.StatusAccepted
	again.Description = "For a successful run whose files are not all here: goes on where the last copy broke off. The run's `step` says how " +
		"far it is, `warnings` what went wrong, and `artifact_uri` names a folder of this server when all are here."
	huma.Register(a, again, h.copyRunArtifacts)

	get := operation(http.MethodGet, "/runs/{run_id}/artifact", "getRunArtifact", "One model file, as a download", "artifacts",
		http.StatusNotFound, http.StatusRequestedRangeNotSatisfiable)
	get.Description = "Takes If-None-Match, If-Modified-Since, and Range (one range; several are answered with the whole file)."
	binary := map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
	get.Responses = map[string]*huma.Response{
		"200": {Description: "The file", Content: binary},
		"206": {Description: "The range asked for", Content: binary},
		"304": {Description: "Unchanged"},
	}
	huma.Register(a, get, h.getRunArtifact)
}

func (h *Handlers) listRunArtifacts(ctx context.Context, in *RunPath) (*body[api.ArtifactList], error) {
	list, err := h.Supervisor.Artifacts(ctx, in.RunID)
	return ok(list), h.problem(ctx, err)
}

func (h *Handlers) copyRunArtifacts(ctx context.Context, in *RunPath) (*body[api.RunStarted], error) {
	err := h.Supervisor.CopyArtifacts(ctx, in.RunID)
	return ok(api.RunStarted{RunID: in.RunID, Started: true}), h.problem(ctx, err)
}

// getRunArtifact opens the file before it answers, so that a missing one is still a problem document.
func (h *Handlers) getRunArtifact(ctx context.Context, in *getArtifactInput) (*huma.StreamResponse, error) {
	f, err := h.Supervisor.OpenArtifact(ctx, in.RunID, in.Path)
	if err != nil {
		return nil, h.problem(ctx, err)
	}
	st, err := f.Stat()
	content, seeks := f.(io.ReadSeeker)
	if err == nil && !seeks {
		err = fmt.Errorf("artifact %T cannot seek", f)
	}
	if err != nil {
		return nil, h.problem(ctx, errors.Join(err, f.Close()))
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer f.Close() //nolint:errcheck // only read from
		r, w := humachi.Unwrap(hc)
		serveDownload(w, r, st, content)
	}}, nil
}

// serveDownload sends a file of unknown intent: never shown, never run, always saved.
func serveDownload(w http.ResponseWriter, r *http.Request, st fs.FileInfo, content io.ReadSeeker) {
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", attachment(path.Base(st.Name())))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'")
	h.Set("Cache-Control", "private, no-cache")
	h.Set("ETag", fmt.Sprintf(`"%x-%x"`, st.Size(), st.ModTime().UnixNano()))
	if strings.Contains(r.Header.Get("Range"), ",") {
		r.Header.Del("Range") // several ranges come as multipart, which no client of ours reads
	}
	// A download changes nothing, so conditions on a change have no place.
	r.Header.Del("If-Match")
	r.Header.Del("If-Unmodified-Since")
	http.ServeContent(&rangeWriter{ResponseWriter: w}, r, "", st.ModTime(), content)
}

// attachment is a Content-Disposition; names that have no form in one are left to the browser.
func attachment(name string) string {
	if d := mime.FormatMediaType("attachment", map[string]string{"filename": name}); d != "" {
		return d
	}
	return "attachment"
}

// rangeWriter turns net/http's text about a range outside the file into a problem document.
type rangeWriter struct {
	http.ResponseWriter
	refused bool
}

// WriteHeader passes every status on but that of a bad range.
func (w *rangeWriter) WriteHeader(status int) {
	if status != http.StatusRequestedRangeNotSatisfiable {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.refused = true
	d := document(status, "The range lies outside the file")
	d.Hint = "Content-Range tells the file's size"
	writeProblem(w.ResponseWriter, d)
}

// Write drops the text that goes with a bad range.
func (w *rangeWriter) Write(b []byte) (int, error) {
	if w.refused {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}

// ReadFrom passes a file on to who can send it quickest.
func (w *rangeWriter) ReadFrom(r io.Reader) (int64, error) {
	if w.refused {
		return io.Copy(io.Discard, r)
	}
	return io.Copy(w.ResponseWriter, r)
}

// Unwrap lets http.ResponseController find the connection.
func (w *rangeWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
