package handlers

import (
	"context"
	"errors"
	"net/http"

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
	http.StatusBadRequest:            "bad_request",
	http.StatusUnauthorized:          "unauthenticated",
	http.StatusForbidden:             "denied",
	http.StatusNotFound:              "not_found",
	http.StatusMethodNotAllowed:      "method_not_allowed",
	http.StatusNotAcceptable:         "not_acceptable",
	http.StatusRequestTimeout:        "request_timeout",
	http.StatusRequestEntityTooLarge: "too_large",
	http.StatusUnsupportedMediaType:  "unsupported_media_type",
	http.StatusUnprocessableEntity:   "invalid_request",
	http.StatusTooManyRequests:       "too_many_requests",
}

func document(status int, message string, errs ...error) *ErrorDocument {
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

// init replaces Huma's process-wide error makers and array default; nothing else of Huma is global to us.
func init() {
	huma.DefaultArrayNullable = false
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		return document(status, message, errs...)
	}
	huma.NewErrorWithContext = func(_ huma.Context, status int, message string, errs ...error) huma.StatusError {
		return document(status, message, errs...)
	}
}

// problem turns an error into its document. What is not an api.Error is internal: whole in the log, silent outside.
func (h *Handlers) problem(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	e := api.AsError(err)
	d := document(statuses[e.Kind], e.Message)
	if d.Status == http.StatusServiceUnavailable {
		d.Detail = e.Message
	}
	if e.Kind == api.KindInternal {
		h.Log.ErrorContext(ctx, "request failed", "error", err)
		return d
	}
	d.Code, d.Hint, d.Errors = e.Code, e.Hint, e.Problems
	return d
}
