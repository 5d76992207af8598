package handlers

import (
	"context"
	"io"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"potato/api"
	"potato/runners/agents"
)

type agentProgramInput struct {
	OS   string `path:"os" maxLength:"20" pattern:"^[A-Za-z0-9_]+$" example:"linux" doc:"As Go or uname -s names it"`
	Arch string `path:"arch" maxLength:"20" pattern:"^[A-Za-z0-9_]+$" example:"amd64" doc:"As Go or uname -m names it"`
}

func (h *Handlers) registerAgentDownload(a huma.API) {
	program := huma.Operation{
		Method: http.MethodGet, Path: AgentPrefix + "/agent/{os}/{arch}", OperationID: "getAgent", Summary: "The agent's program for a platform",
		Tags: []string{"agent"}, Errors: []int{http.StatusNotFound, http.StatusUnprocessableEntity},
		Description: "Needs no token: the program is the same for everyone and holds no secret. Repr-Digest is its SHA-256.",
		Responses: map[string]*huma.Response{"200": {Description: "The program", Content: map[string]*huma.MediaType{
			"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}}},
	}
	huma.Register(a, program, h.getAgent)
	sum := huma.Operation{
		Method: http.MethodGet, Path: AgentPrefix + "/agent/{os}/{arch}.sha256", OperationID: "getAgentChecksum", Summary: "The SHA-256 of the agent's program",
		Tags: []string{"agent"}, Errors: []int{http.StatusNotFound, http.StatusUnprocessableEntity},
		Description: "One line, as `sha256sum -c` reads it, for a file named potato-agent.",
		Responses: map[string]*huma.Response{"200": {Description: "The line", Content: map[string]*huma.MediaType{
			"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}},
		}}},
	}
	huma.Register(a, sum, h.getAgentChecksum)
}

func (h *Handlers) getAgent(ctx context.Context, in *agentProgramInput) (*huma.StreamResponse, error) {
	program, err := agents.Find(agents.PlatformOf(in.OS, in.Arch))
	if err != nil {
		return nil, h.problem(ctx, err)
	}
	from, err := program.Open()
	if err != nil {
		return nil, h.problem(ctx, err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer from.Close() //nolint:errcheck // only read from
		r, w := humachi.Unwrap(hc)
		w.Header().Set("Content-Type", "application/octet-stream")
		w.Header().Set("Content-Disposition", attachment("potato-agent"))
		w.Header().Set("Content-Length", strconv.FormatInt(program.Size, 10))
		w.Header().Set("ETag", `"`+program.SHA256+`"`)
		w.Header().Set("Repr-Digest", api.ReprDigest(program.SHA256))
		if r.Method == http.MethodHead {
			return
		}
		_, _ = io.Copy(w, from) // the client went away
	}}, nil
}

func (h *Handlers) getAgentChecksum(ctx context.Context, in *agentProgramInput) (*huma.StreamResponse, error) {
	program, err := agents.Find(agents.PlatformOf(in.OS, in.Arch))
	if err != nil {
		return nil, h.problem(ctx, err)
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "text/plain; charset=utf-8")
		hc.SetStatus(http.StatusOK)
		_, _ = io.WriteString(hc.BodyWriter(), program.SHA256+"  potato-agent\n") // the client went away
	}}, nil
}
