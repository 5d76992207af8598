package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

// ErrorDocument is a problem document (RFC 9457) with a stable code and what to do about it.
type ErrorDocument struct {
	Type   string        `json:"type" doc:"about:blank: the code says more" example:"about:blank"`
	Title  string        `json:"title" example:"Conflict"`
	Status int           `json:"status" example:"409"`
	Detail string        `json:"detail" doc:"What happened, as a sentence"`
	Code   string        `json:"code" doc:"Stable; programs may rely on it" example:"unknown_backend"`
	Hint   string        `json:"hint,omitempty" doc:"What to do about it"`
	Errors []api.Problem `json:"errors,omitempty" doc:"The places in the request that are wrong, all of them"`
}

func (e *ErrorDocument) Error() string { return e.Detail }

// GetStatus is the HTTP status of the answer.
func (e *ErrorDocument) GetStatus() int { return e.Status }

// ContentType is that of problem documents.
func (e *ErrorDocument) ContentType(string) string { return "application/problem+json" }

var statuses = map[api.Kind]int{
	api.KindInvalid:         http.StatusUnprocessableEntity,
	api.KindUnauthenticated: http.StatusUnauthorized,
	api.KindDenied:          http.StatusForbidden,
	api.KindNotFound:        http.StatusNotFound,
	api.KindConflict:        http.StatusConflict,
	api.KindGone:            http.StatusGone,
	api.KindTooLarge:        http.StatusRequestEntityTooLarge,
	api.KindTooMany:         http.StatusTooManyRequests,
	api.KindUnavailable:     http.StatusServiceUnavailable,
	api.KindInternal:        http.StatusInternalServerError,
}

// codes are the codes of problems that Huma finds before a handler runs.
var codes = map[int]string{
	http.StatusBadRequest:                   "bad_request",
	http.StatusUnauthorized:                 "unauthenticated",
	http.StatusForbidden:                    "denied",
	http.StatusNotFound:                     "not_found",
	http.StatusMethodNotAllowed:             "method_not_allowed",
	http.StatusNotAcceptable:                "not_acceptable",
	http.StatusRequestTimeout:               "request_timeout",
	http.StatusRequestEntityTooLarge:        "too_large",
	http.StatusUnsupportedMediaType:         "unsupported_media_type",
	http.StatusUnprocessableEntity:          "invalid_request",
	http.StatusTooManyRequests:              "too_many_requests",
	http.StatusRequestedRangeNotSatisfiable: "bad_range",
}

func document(status int, message string, errs ...error) *ErrorDocument {
	if status == http.StatusInternalServerError && message == "cannot read request body" {
		status = http.StatusBadRequest // Huma takes a body that breaks off, or is no body, for a fault of ours
	}
	d := &ErrorDocument{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: message, Code: codes[status]}
	if status >= http.StatusInternalServerError {
		d.Detail, d.Code = "internal error", "internal"
		return d
	}
	for _, err := range errs {
		var detailer huma.ErrorDetailer
		if errors.As(err, &detailer) {
			// The value is left out on purpose: it may be a secret, and for an unknown property it is the whole body.
			det := detailer.ErrorDetail()
			d.Errors = append(d.Errors, api.Problem{Path: det.Location, Message: det.Message})
		}
	}
	return d
}

// tellHuma replaces Huma's process-wide error makers and array default; nothing else of Huma is global to us.
var tellHuma = sync.OnceFunc(func() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return document(status, message, errs...)
	}
	huma.NewErrorWithContext = func(_ huma.Context, status int, message string, errs ...error) huma.StatusError {
		return document(status, message, errs...)
	}
})

// retryAfter is in how many seconds to ask again what cannot be answered now.
const retryAfter = "5"

// problem turns an error into its document. What is not an api.Error is internal: whole in the log, silent outside.
func (h *Handlers) problem(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	e := api.AsError(err)
	if ctx.Err() != nil && e.Kind == api.KindInternal {
		return document(statusClientGone, "the client went away")
	}
	if e.Kind == api.KindInternal {
		h.Log.ErrorContext(ctx, "request failed", "request", requestOf(ctx).id, "operation", requestOf(ctx).operation, "err", err)
		return internal(ctx)
	}
	d := problemOf(e)
	if e.Kind == api.KindUnavailable {
		return huma.ErrorWithHeaders(d, http.Header{"Retry-After": {retryAfter}})
	}
	return d
}

// problemOf is an error's document; it is not for internal ones.
func problemOf(e *api.Error) *ErrorDocument {
	status := statuses[e.Kind]
	return &ErrorDocument{
		Type: "about:blank", Status: status, Title: http.StatusText(status), Detail: e.Message, Code: e.Code, Hint: e.Hint,
		Errors: e.Problems,
	}
}

// statusClientGone is never seen by anyone: the sender has left. It keeps such requests apart in the metrics.
const statusClientGone = 499

// internal says where to look and nothing else.
func internal(ctx context.Context) *ErrorDocument {
	d := document(http.StatusInternalServerError, "")
	d.Hint = "The server's log tells the cause beside request=" + requestOf(ctx).id
	return d
}

// writeProblem answers outside of Huma's operations in the same form.
func writeProblem(w http.ResponseWriter, d *ErrorDocument) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Del("Content-Length")
	w.WriteHeader(d.Status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(d) // The client went away; there is nobody left to tell.
}
