package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"potato/api"
)

const sessionCookie = "potato_training"

type createSessionInput struct {
	Body api.SessionRequest
}

type sessionOutput struct {
	SetCookie http.Cookie `header:"Set-Cookie"`
}

func (h *Handlers) registerSession(a huma.API) {
	create := operation(http.MethodPost, "/session", "createSession", "Sign a browser in with the admin key", "session",
		http.StatusUnprocessableEntity, http.StatusTooManyRequests)
	create.Security = nil
	create.DefaultStatus = http.StatusNoContent
	huma.Register(a, create, h.createSession)

	del := operation(http.MethodDelete, "/session", "deleteSession", "Sign the browser out", "session")
	del.DefaultStatus = http.StatusNoContent
	huma.Register(a, del, h.deleteSession)
}

func (h *Handlers) createSession(ctx context.Context, in *createSessionInput) (*sessionOutput, error) {
	return nil, errNotImplemented
}

func (h *Handlers) deleteSession(ctx context.Context, _ *struct{}) (*sessionOutput, error) {
	return nil, errNotImplemented
}
