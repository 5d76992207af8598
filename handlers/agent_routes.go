package handlers

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
)

// NewAgentRoutes serves the routes of agents and nothing else: what an agent reaches that this server has started on another
// machine. Whoever gets to it there, debug or not, is no admin (A4).
func NewAgentRoutes(o Options) http.Handler {
	o.Debug, o.AdminKey = false, ""
	h := newHandlers(o)
	router := chi.NewMux()
	router.NotFound(notFound)
	router.MethodNotAllowed(methodNotAllowed(router))
	a := humachi.New(router, config())
	a.UseMiddleware(name, h.authenticate)
	h.registerAgentJobs(a)
	h.registerAgentBundle(a)
	h.registerAgentPredictions(a)
	return h.observe(secure(router))
}
