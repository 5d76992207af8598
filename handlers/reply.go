package handlers

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// body is an operation's answer as JSON.
type body[T any] struct{ Body T }

// ok answers with v; beside an error it is passed over.
func ok[T any](v T) *body[T] { return &body[T]{Body: v} }

// reply answers with v as JSON where an operation has other forms of answer beside it.
func reply(v any) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "application/json")
		hc.SetStatus(http.StatusOK)
		enc := json.NewEncoder(hc.BodyWriter())
		enc.SetEscapeHTML(false)
		_ = enc.Encode(v) // The client went away; there is nobody left to tell.
	}}
}

func noContent() *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) { hc.SetStatus(http.StatusNoContent) }}
}
