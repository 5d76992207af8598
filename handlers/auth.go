package handlers

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"potato/api"
)

// authenticate refuses a request that satisfies none of its operation's security alternatives, before anything of the
// request is parsed: a stranger learns nothing from validation.
func (h *Handlers) authenticate(ctx huma.Context, next func(huma.Context)) {
	if forAgents(ctx.Operation()) {
		h.authenticateAgent(ctx, next)
		return
	}
	r, w := humachi.Unwrap(ctx)
	if err := h.authorize(r, ctx.Operation().Security); err != nil {
		refuse(w, err)
		return
	}
	next(ctx)
}

// challenge names the scheme; browsers know none of that name and show no prompt of their own.
const challenge = `ApiKey realm="potato training", header="X-API-Key"`

// refuse answers a request that is not let in.
func refuse(w http.ResponseWriter, err *api.Error) {
	if err.Kind == api.KindUnauthenticated {
		w.Header().Set("WWW-Authenticate", challenge)
	}
	writeProblem(w, problemOf(err))
}

// authorize passes a request that satisfies one of the alternatives: each is a set of schemes, all of which must hold.
func (h *Handlers) authorize(r *http.Request, alternatives []map[string][]string) *api.Error {
	if len(alternatives) == 0 {
		return nil
	}
	for _, schemes := range alternatives {
		holds := true
		for scheme := range schemes {
			holds = holds && h.satisfies(r, scheme)
		}
		if holds {
			return nil
		}
	}
	switch {
	case h.keyStaysHere(r) && (r.Header.Get("X-API-Key") != "" || len(tokens(r)) > 0):
		return errWeakKey
	case r.Header.Get("X-API-Key") != "":
		return h.wrongKey()
	}
	return api.Unauthenticatedf("unauthenticated", "This needs the study's admin key").
		WithHint("Send admin_api_key in the header X-API-Key, or sign in on the Training page")
}

// satisfies reports whether the request has what the scheme asks for. With debug a request from this machine has all
// that an admin has (A4).
func (h *Handlers) satisfies(r *http.Request, scheme string) bool {
	switch scheme {
	case "apiKey":
		return h.rightKey(r, r.Header.Get("X-API-Key")) || h.Debug && fromHere(r)
	case "session":
		return !h.keyStaysHere(r) && h.sessions.signedIn(r) || h.Debug && fromHere(r)
	}
	return false
}

// admin passes those who may use the admin routes, for what is served beside the operations.
func (h *Handlers) admin(r *http.Request) *api.Error { return h.authorize(r, admin) }

// rightKey reports whether key is the study's admin key, and usable from where the request comes.
func (h *Handlers) rightKey(r *http.Request, key string) bool {
	return h.AdminKey != "" && sameKey(key, h.AdminKey.Reveal()) && !h.keyStaysHere(r)
}

// keyStaysHere reports whether the admin key is one that could be guessed and the request is not from this machine. A
// page of another site can reach this machine's own address under a name of its own (DNS rebinding), and would
// guess change-me first. Whoever named an address to listen on has been warned and wants it everywhere.
func (h *Handlers) keyStaysHere(r *http.Request) bool {
	return !h.WeakKeyAnywhere && h.AdminKey != "" && h.AdminKey.Weak() && !fromHere(r)
}

var errWeakKey = api.Deniedf("weak_key", "The study's admin key is weak, so it is taken from the server's own machine only").
	WithHint("Set an admin_api_key of at least 16 characters, or open the page as localhost")

// wrongKey is the answer to a key that is not the study's; where the study has none, it says so.
func (h *Handlers) wrongKey() *api.Error {
	if h.AdminKey == "" {
		return api.Unauthenticatedf("no_admin_key", "This study has no admin_api_key, so nobody can sign in").
			WithHint("Set admin_api_key in the config, at least 16 characters, and start the server again")
	}
	return api.Unauthenticatedf("wrong_key", "The admin key is wrong").
		WithHint("It is admin_api_key in the study's config")
}
