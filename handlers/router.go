package handlers

import (
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"potato/spa"
)

// handler is everything that the server answers: the operations, the page, and what little stands beside them.
func (h *Handlers) handler(page http.Handler) http.Handler {
	router := chi.NewMux()
	router.Use(middleware.GetHead) // HEAD is GET without the body, which net/http leaves out by itself
	router.NotFound(notFound)
	router.MethodNotAllowed(methodNotAllowed(router))
	a := h.register(router)
	router.Get("/", h.named("root", http.RedirectHandler(spa.Prefix, http.StatusFound)))
	router.Get("/metrics", h.named("metrics", h.adminOnly(h.exposition())))
	router.Get("/openapi.yaml", h.named("openapi", documentHandler("application/openapi+yaml", a.OpenAPI().YAML)))
	router.Get("/openapi.json", h.named("openapi", documentHandler("application/openapi+json", a.OpenAPI().MarshalJSON)))
	named := h.named("page", page)
	dispatch := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == spa.Prefix || strings.HasPrefix(r.URL.Path, spa.Prefix+"/") && !strings.HasPrefix(r.URL.Path+"/", Prefix+"/") {
			named(w, r)
			return
		}
		router.ServeHTTP(w, r)
	})
	return h.observe(secure(sameOrigin(compress(dispatch))))
}

// named tells the call's record what it is.
func (h *Handlers) named(operation string, next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		requestOf(r.Context()).operation = operation
		next.ServeHTTP(w, r)
	}
}

// adminOnly guards what is no operation.
func (h *Handlers) adminOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := h.admin(r); err != nil {
			refuse(w, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// documentHandler serves the OpenAPI document, written out when somebody first asks.
func documentHandler(kind string, write func() ([]byte, error)) http.Handler {
	text := sync.OnceValues(write)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := text()
		if err != nil {
			writeProblem(w, internal(r.Context()))
			return
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "no-cache")
		_, _ = w.Write(b) // the client went away
	})
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	writeProblem(w, document(http.StatusNotFound, "There is nothing at this address"))
}

// routePath is what chi routes by.
func routePath(r *http.Request) string {
	if r.URL.RawPath != "" {
		return r.URL.RawPath
	}
	return r.URL.Path
}

// methodNotAllowed says which methods there are, as HTTP demands; chi's own answer is text.
func methodNotAllowed(router chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allowed []string
		for _, m := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
			if router.Match(chi.NewRouteContext(), m, routePath(r)) {
				allowed = append(allowed, m)
				if m == http.MethodGet {
					allowed = append(allowed, http.MethodHead)
				}
			}
		}
		if len(allowed) == 0 { // chi refuses a method that it does not know before it looks at the path
			notFound(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		writeProblem(w, document(http.StatusMethodNotAllowed, "This address takes "+strings.Join(allowed, ", ")))
	}
}
