package handlers

import (
	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"potato/api"
)

// needDatabase answers for all operations on the study when its database was removed under the running server: what they read
// would be of the past, and what they wrote would be lost.
func (h *Handlers) needDatabase(ctx huma.Context, next func(huma.Context)) {
	if op := ctx.Operation(); len(op.Security) > 0 && op.Path != sessionPath { // to sign out needs none
		if err := h.Supervisor.DatabaseGone(); err != nil {
			_, w := humachi.Unwrap(ctx)
			w.Header().Set("Retry-After", retryAfter)
			writeProblem(w, problemOf(api.AsError(err)))
			return
		}
	}
	next(ctx)
}

const sessionPath = Prefix + "/session"
