package handlers

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"potato/api"
	"potato/supervisor"
)

// AgentPrefix is where the agents' routes live. No admin route takes an agent's token, and none of these the admin's key.
const AgentPrefix = "/api/training"

const agentToken = "agentToken"

// agentOnly is the security of every operation of agents.
var agentOnly = []map[string][]string{{agentToken: {}}}

// agentOperation fills in what all operations of agents share: no token or a wrong one, a request that is wrong, a server
// that cannot answer now.
func agentOperation(method, path, id, summary string, errs ...int) huma.Operation {
	return huma.Operation{
		Method: method, Path: AgentPrefix + path, OperationID: id, Summary: summary, Tags: []string{"agent"}, Security: agentOnly,
		Errors: append([]int{http.StatusUnauthorized, http.StatusUnprocessableEntity, http.StatusServiceUnavailable}, errs...),
	}
}

// aboutJob adds what every operation about one job can answer.
func aboutJob(op huma.Operation) huma.Operation {
	op.Errors = append(op.Errors, http.StatusNotFound, http.StatusConflict, http.StatusGone)
	return op
}

// JobPath is what every call about a job carries: the run, and the lease that came with it.
type JobPath struct {
	RunPath
	Lease string `header:"Potato-Lease" required:"true" minLength:"1" maxLength:"100" doc:"The lease that came with the job"`
}

// Patient is for operations that answer late: nothing reads from the connection meanwhile, and no deadline of the request's
// body may cut it. It is exported because Huma passes over embedded fields that are not.
type Patient struct{}

// Resolve lifts the deadline once the body was read.
func (Patient) Resolve(ctx huma.Context) []error {
	_ = ctx.SetReadDeadline(noDeadline) // a connection without deadlines needs none lifted
	return nil
}

type agentKey struct{}

// agentOf is whose token the request came with.
func agentOf(ctx context.Context) supervisor.Agent {
	who, _ := ctx.Value(agentKey{}).(supervisor.Agent)
	return who
}

// forAgents reports whether the operation is one of agents.
func forAgents(op *huma.Operation) bool {
	return len(op.Security) == 1 && op.Security[0][agentToken] != nil
}

// authenticateAgent lets a request through whose token is valid, with whose it is.
func (h *Handlers) authenticateAgent(ctx huma.Context, next func(huma.Context)) {
	r, w := humachi.Unwrap(ctx)
	requestOf(r.Context()).routine = true
	token := bearer(r)
	who, err := h.Supervisor.Authenticate(r.Context(), token)
	if err != nil && token != "" {
		err = cmp.Or(h.Supervisor.DatabaseGone(), err) // tokens are in the database
	}
	if err != nil {
		h.refuseAgent(w, r, err)
		return
	}
	next(huma.WithValue(ctx, agentKey{}, who))
}

func (h *Handlers) refuseAgent(w http.ResponseWriter, r *http.Request, err error) {
	e := api.AsError(err)
	switch e.Kind {
	case api.KindUnauthenticated:
		w.Header().Set("WWW-Authenticate", `Bearer realm="potato training"`)
		writeProblem(w, problemOf(e))
	case api.KindInternal:
		h.Log.ErrorContext(r.Context(), "request failed", "request", requestOf(r.Context()).id, "operation", requestOf(r.Context()).operation, "err", err)
		writeProblem(w, internal(r.Context()))
	default:
		writeProblem(w, problemOf(e))
	}
}

// bearer is the token of the header Authorization; empty when there is none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
