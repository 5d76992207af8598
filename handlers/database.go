package handlers

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"potato/api"
)

// needDatabase answers for all operations on the study when its database was removed under the running server: what they read
// would be of the past, and what they wrote would be lost.
func (h *Handlers) needDatabase(ctx huma.Context, next func(huma.Context)) {
	if len(ctx.Operation().Security) > 0 {
		if err := h.Supervisor.DatabaseGone(); err != nil {
			_, w := humachi.Unwrap(ctx)
			w.Header().Set("Retry-After", retryAfter)
			writeProblem(w, problemOf(api.AsError(err)))
			return
		}
	}
	next(ctx)
}
