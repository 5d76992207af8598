package handlers

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"

	"potato/project"
	"potato/supervisor"
)

// APIVersion is the version of the contract; it changes when the contract does, not with every build.
const APIVersion = "1.0.0"

// Prefix is where the admin routes live, the published peer's place for them.
const Prefix = "/admin/training/api"

// Options are what the handlers stand on. A zero Options is enough to describe the service, not to serve it.
type Options struct {
	Supervisor *supervisor.Supervisor
	AdminKey   project.Secret // empty: nobody is admin by key

	// WeakKeyAnywhere takes a weak key from other machines too: the admin named the address to listen on.
	WeakKeyAnywhere bool
	// Debug makes everyone on this machine an admin (A4). It is only set when the server listens on loopback alone.
	Debug bool

	TrustedProxies []netip.Prefix // whose X-Forwarded-For counts
	Log            *slog.Logger
	Leaving        <-chan struct{} // closed when the server goes down: streams end
	Now            func() time.Time
}

// Handlers holds the operations' common ground.
type Handlers struct {
	Options
	sessions *sessions
	limiter  *limiter
	*measures
}

// New registers every operation on the router and returns the API, whose OpenAPI document is then complete.
// It does no I/O: the document is generated from it without a server.
func New(router chi.Router, o Options) huma.API {
	return newHandlers(o).register(router)
}

func newHandlers(o Options) *Handlers {
	tellHuma()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Handlers{Options: o, sessions: newSessions(o.Now), limiter: newLimiter(o.Now), measures: newMeasures()}
}

func (h *Handlers) register(router chi.Router) huma.API {
	a := humachi.New(router, config())
	a.UseMiddleware(name, h.authenticate, h.needDatabase)
	h.registerSession(a)
	h.registerStatus(a)
	h.registerTrainers(a)
	h.registerSchemas(a)
	h.registerBackends(a)
	h.registerRuns(a)
	h.registerEvents(a)
	h.registerLog(a)
	h.registerMetrics(a)
	h.registerPredictions(a)
	h.registerArtifacts(a)
	h.registerAutoRetrain(a)
	h.registerAgentJobs(a)
	h.registerAgentBundle(a)
	h.registerAgentPredictions(a)
	h.registerAgentDownload(a)
	allowNullObjects(a)
	return a
}

func config() huma.Config {
	c := huma.DefaultConfig("Potato training", APIVersion)
	c.Info.Description = "Trains models on the labels of an annotation study, scores them on held-out items and " +
		"brings the predictions back."
	c.CreateHooks = nil // no $schema property in bodies
	c.DocsPath, c.SchemasPath, c.OpenAPIPath = "", "", ""
	c.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"apiKey":   {Type: "apiKey", In: "header", Name: "X-API-Key", Description: "The study's admin_api_key"},
		agentToken: {Type: "http", Scheme: "bearer", Description: "An agent backend's token, as `potato training register` prints it"},
		"session":  {Type: "apiKey", In: "cookie", Name: sessionCookie, Description: "Set by createSession"},
	}
	return c
}

// admin is the security of every admin operation: the key or a signed-in browser.
var admin = []map[string][]string{{"apiKey": {}}, {"session": {}}}

// operation fills in what all admin operations share; errs are the statuses it can answer besides those that any can: no
// or a wrong key, a write from another site, a study whose files are wrong, a disk or an interpreter that is out of order.
func operation(method, path, id, summary, tag string, errs ...int) huma.Operation {
	return huma.Operation{
		Method: method, Path: Prefix + path, OperationID: id, Summary: summary, Tags: []string{tag},
		Security: admin,
		Errors:   append([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusServiceUnavailable}, errs...),
	}
}
