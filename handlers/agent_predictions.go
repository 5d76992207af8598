package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/klauspost/compress/gzip"

	"potato/api"
	"potato/supervisor"
)

const ndjson = "application/x-ndjson"

// JobUpload is what uploads carry, whole or in parts. It is exported because Huma passes over embedded fields that are not.
type JobUpload struct {
	JobPath
	Caller
	ReprDigest string `header:"Repr-Digest" required:"true" maxLength:"1000" doc:"sha-256 of the whole file as it is before gzip (RFC 9530)" example:"sha-256=:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=:"`
	Encoding   string `header:"Content-Encoding" doc:"gzip, or none"`
}

type uploadPartInput struct {
	JobUpload
	Offset int64 `header:"Upload-Offset" required:"true" minimum:"0" doc:"Where in the file the body belongs, in bytes before gzip"`
	Length int64 `header:"Upload-Length" required:"true" minimum:"0" doc:"Size of the whole file"`
}

type offsetOutput struct {
	Offset int64 `header:"Upload-Offset"`
}

func (h *Handlers) registerAgentPredictions(a huma.API) {
	file := &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{ndjson: {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}
	errs := []int{http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType}

	put := aboutJob(agentOperation(http.MethodPut, "/jobs/{run_id}/predictions", "putJobPredictions", "Upload the predictions", errs...))
	put.Description = "A predictions.jsonl. All rows are taken or none; the same upload again is answered as the first was."
	put.RequestBody = file
	huma.Register(a, put, h.putJobPredictions)

	patch := aboutJob(agentOperation(http.MethodPatch, "/jobs/{run_id}/predictions", "patchJobPredictions", "Upload a part of the predictions", errs...))
	patch.Description = "The parts follow each other; the last one brings the file to Upload-Length, and then it is taken or refused as a whole."
	patch.RequestBody = file
	huma.Register(a, patch, h.patchJobPredictions)

	head := aboutJob(agentOperation(http.MethodHead, "/jobs/{run_id}/predictions", "headJobPredictions", "Tell how much of the predictions has come"))
	head.DefaultStatus = http.StatusOK
	huma.Register(a, head, h.headJobPredictions)
}

func (h *Handlers) putJobPredictions(ctx context.Context, in *JobUpload) (*body[api.UploadOffset], error) {
	up := supervisor.Upload{Size: -1}
	if in.r.ContentLength >= 0 && !in.packed() {
		up.Size = in.r.ContentLength
	}
	return h.upload(ctx, in, up)
}

func (h *Handlers) patchJobPredictions(ctx context.Context, in *uploadPartInput) (*body[api.UploadOffset], error) {
	return h.upload(ctx, &in.JobUpload, supervisor.Upload{Part: true, Offset: in.Offset, Size: in.Length})
}

func (h *Handlers) headJobPredictions(ctx context.Context, in *JobPath) (*offsetOutput, error) {
	have, err := h.Supervisor.AgentDesk(agentOf(ctx)).UploadOffset(ctx, in.RunID, in.Lease)
	if err != nil {
		return nil, h.problem(ctx, err)
	}
	return &offsetOutput{Offset: have.Offset}, nil
}

func (h *Handlers) upload(ctx context.Context, in *JobUpload, up supervisor.Upload) (*body[api.UploadOffset], error) {
	requestOf(ctx).stream = true
	if kind, _, _ := strings.Cut(in.r.Header.Get("Content-Type"), ";"); !strings.EqualFold(strings.TrimSpace(kind), ndjson) {
		return nil, document(http.StatusUnsupportedMediaType, "Predictions are "+ndjson)
	}
	if !in.packed() && in.Encoding != "" && !strings.EqualFold(in.Encoding, "identity") {
		return nil, document(http.StatusUnsupportedMediaType, "Predictions come as they are or packed with gzip")
	}
	if up.SHA256 = api.ReprSHA256(in.r.Header); up.SHA256 == "" {
		return nil, h.problem(ctx, api.Invalidf("digest_missing", "Repr-Digest names no SHA-256").
			WithHint("it looks like sha-256=:BASE64: and is of the file as it is before gzip"))
	}
	content := newUploadReader(in.Caller)
	content.wait()
	up.Content, up.Interrupt = content, content.interrupt
	if in.packed() {
		up.Content = &unpacker{from: content}
	}
	have, err := h.Supervisor.AgentDesk(agentOf(ctx)).Upload(ctx, in.RunID, in.Lease, up)
	return ok(have), h.problem(ctx, err)
}

func (in *JobUpload) packed() bool {
	return strings.EqualFold(in.Encoding, "gzip") || strings.EqualFold(in.Encoding, "x-gzip")
}

// uploadStall is how long an upload may stand still. Its whole may take as long as it moves.
const uploadStall = time.Minute

var noDeadline time.Time

// uploadReader reads a request's body with a deadline that moves on with what comes, and none once it has come: storing it
// may take longer.
type uploadReader struct {
	r           io.Reader
	rc          *http.ResponseController
	interrupted atomic.Bool
}

func newUploadReader(c Caller) *uploadReader {
	return &uploadReader{r: c.r.Body, rc: http.NewResponseController(c.w)}
}

// Read reads. What is not the end of the body is told as an error that a client may get over by trying again.
func (u *uploadReader) Read(b []byte) (int, error) {
	u.wait()
	if u.interrupted.Load() {
		u.hangUp()
		return 0, broken(errors.New("the same upload has come on another connection"))
	}
	n, err := u.r.Read(b)
	switch {
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		_ = u.rc.SetReadDeadline(noDeadline)
		return n, io.EOF
	}
	u.hangUp()
	return n, broken(err)
}

// wait gives the client its time to send more. It counts as well when we answer without reading: net/http reads the rest.
func (u *uploadReader) wait() {
	_ = u.rc.SetReadDeadline(time.Now().Add(uploadStall)) // a connection without deadlines is one of a test
}

// hangUp lets nobody wait for the rest of the body: net/http would, before it answers.
func (u *uploadReader) hangUp() { _ = u.rc.SetReadDeadline(time.Unix(1, 0)) }

// interrupt makes a Read that waits return.
func (u *uploadReader) interrupt() {
	u.interrupted.Store(true)
	u.hangUp()
}

func broken(cause error) error {
	return api.Unavailablef("upload_broken", "The upload broke off").WithHint("HEAD tells how much has come").WithCause(cause)
}

// unpacker unpacks what comes. It is told apart whether the line broke or the packing is wrong.
type unpacker struct {
	from *uploadReader
	z    *gzip.Reader
}

// Read reads unpacked bytes.
func (u *unpacker) Read(b []byte) (n int, err error) {
	if u.z == nil {
		if u.z, err = gzip.NewReader(u.from); err != nil {
			return 0, badPacking(err)
		}
	}
	n, err = u.z.Read(b)
	if err == nil || errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return n, err
	}
	return n, badPacking(err)
}

func badPacking(err error) error {
	if api.HasCode(err, "upload_broken") {
		return err
	}
	return api.Invalidf("bad_encoding", "The predictions are not packed with gzip as Content-Encoding says, or not to their end").WithCause(err)
}
