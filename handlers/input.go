package handlers

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"potato/api"
)

// RunPath is the path parameter of every operation on one run. It is exported because Huma passes over embedded
// fields that are not.
type RunPath struct {
	RunID api.RunID `path:"run_id" pattern:"^[0-9]{8}T[0-9]{6}-[0-9a-f]{6}$" example:"20261129T192252-d3d870" doc:"The run's id"`
}

// Caller hands the request itself to an operation that needs more of it than its parameters.
type Caller struct {
	r *http.Request
	w http.ResponseWriter
}

// Resolve remembers the request.
func (c *Caller) Resolve(ctx huma.Context) []error {
	c.r, c.w = humachi.Unwrap(ctx)
	return nil
}

// maxBody bounds what operations read; all of them take small objects.
const maxBody = 1<<20 + 1 // Huma refuses a body of exactly the limit

// withBody adds what every operation that reads a body can answer.
func withBody(op huma.Operation) huma.Operation {
	op.MaxBodyBytes = maxBody
	op.BodyReadTimeout = 30 * time.Second
	op.Errors = append(op.Errors, http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge,
		http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity)
	return op
}
