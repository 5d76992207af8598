package handlers

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"potato/api"
)

func (h *Handlers) registerAgentBundle(a huma.API) {
	for method, id := range map[string]string{http.MethodGet: "getJobBundle", http.MethodHead: "headJobBundle"} {
		op := aboutJob(agentOperation(method, "/jobs/{run_id}/bundle", id, "The job's items and labels, packed", http.StatusRequestedRangeNotSatisfiable))
		op.Description = "A tar.gz. The strong ETag changes with the content; Range with If-Range goes on where a download stopped; " +
			"Repr-Digest (RFC 9530) is of the whole. While the bundle is being built the answer is 503 with Retry-After."
		file := map[string]*huma.MediaType{"application/gzip": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}
		if method == http.MethodHead {
			file = nil
		}
		op.Responses = map[string]*huma.Response{
			"200": {Description: "The whole bundle", Content: file},
			"206": {Description: "The range asked for", Content: file},
			"304": {Description: "Unchanged"},
		}
		huma.Register(a, op, h.getJobBundle)
	}
}

func (h *Handlers) getJobBundle(ctx context.Context, in *JobPath) (*huma.StreamResponse, error) {
	archive, err := h.Supervisor.AgentDesk(agentOf(ctx)).Archive(ctx, in.RunID, in.Lease)
	if api.HasCode(err, "bundle_not_ready") {
		return nil, huma.ErrorWithHeaders(problemOf(api.AsError(err)), http.Header{"Retry-After": {"1"}}) // it has waited already
	}
	if err != nil {
		return nil, h.problem(ctx, err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer archive.Close() //nolint:errcheck // only read from
		r, w := humachi.Unwrap(hc)
		requestOf(r.Context()).stream = true
		w.Header().Set("Content-Type", "application/gzip")
		w.Header().Set("ETag", `"`+archive.SHA256+`"`)
		w.Header().Set("Repr-Digest", api.ReprDigest(archive.SHA256))
		if asked := r.Header.Get("Range"); !strings.HasPrefix(asked, "bytes=") || strings.Contains(asked, ",") {
			r.Header.Del("Range") // other units are to be ignored; several ranges come as multipart, which no client of ours reads
		}
		r.Header.Del("If-Match") // conditions on a change have no place
		r.Header.Del("If-Unmodified-Since")
		http.ServeContent(&rangeWriter{ResponseWriter: w}, r, "", time.Time{}, archive.File)
	}}, nil
}
