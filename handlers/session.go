package handlers

import (
	"context"
	"math"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

type createSessionInput struct {
	Caller
	Body api.SessionRequest
}

type sessionOutput struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
}

func (h *Handlers) registerSession(a huma.API) {
	create := withBody(operation(http.MethodPost, "/session", "createSession", "Sign a browser in with the admin key", "session",
		http.StatusTooManyRequests))
	create.Security = nil
	create.DefaultStatus = http.StatusNoContent
	create.MaxBodyBytes = 16 << 10 // nobody is known yet who could send more
	huma.Register(a, create, h.createSession)

	del := operation(http.MethodDelete, "/session", "deleteSession", "Sign the browser out", "session")
	del.DefaultStatus = http.StatusNoContent
	huma.Register(a, del, h.deleteSession)
}

func (h *Handlers) createSession(ctx context.Context, in *createSessionInput) (*sessionOutput, error) {
	if h.keyStaysHere(in.r) {
		return nil, h.problem(ctx, errWeakKey)
	}
	sender := h.sender(in.r)
	if wait := h.limiter.take(sender); wait > 0 {
		seconds := strconv.Itoa(int(math.Ceil(wait.Seconds())))
		err := api.TooManyf("too_many_requests", "Too many attempts to sign in").WithHint("Try again in %s s", seconds)
		return nil, huma.ErrorWithHeaders(h.problem(ctx, err), http.Header{"Retry-After": {seconds}})
	}
	if !h.rightKey(in.r, in.Body.APIKey) {
		h.Log.WarnContext(ctx, "sign-in refused", "from", sender)
		return nil, huma.ErrorWithHeaders(h.problem(ctx, h.wrongKey()), http.Header{"Www-Authenticate": {challenge}})
	}
	h.limiter.refund(sender)
	others := slices.DeleteFunc(tokens(in.r), h.sessions.valid)
	return &sessionOutput{SetCookie: cookie(in.r, append([]string{h.sessions.start()}, others[:min(len(others), maxTokens-1)]...))}, nil
}

func (h *Handlers) deleteSession(_ context.Context, in *Caller) (*sessionOutput, error) {
	var others []string
	for _, t := range tokens(in.r) {
		if h.sessions.valid(t) {
			h.sessions.end(t)
		} else {
			others = append(others, t)
		}
	}
	return &sessionOutput{SetCookie: cookie(in.r, others)}, nil
}
