package handlers

import (
	"context"
	"net/http"
	"slices"

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
	create := withBody(operation(http.MethodPost, "/session", "createSession", "Sign a browser in with the admin key", "session"))
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
	if !h.rightKey(in.r, in.Body.APIKey) {
		err, headers := h.wrongKey(in.r)
		return nil, huma.ErrorWithHeaders(h.problem(ctx, err), headers)
	}
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
