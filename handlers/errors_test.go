package handlers_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"potato/api"
	"potato/handlers"
)

// An agent tells from the status what kind of error it was told of: what is a status here is the same kind there.
func TestKindsComeBackFromTheirStatuses(t *testing.T) {
	for kind, status := range handlers.Statuses {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": "some_code", "detail": "It went wrong"})
		}))
		c := &api.Client{BaseURL: server.URL, Token: "token"}
		err := c.Finish(t.Context(), api.Job{RunID: "20261129T192252-d3d870", Lease: "lease"}, api.Finish{})
		server.Close()
		if e := api.AsError(err); e == nil || e.Kind != kind || e.Code != "some_code" {
			t.Errorf("%s is answered with %d, which the client takes for %+v", kind, status, e)
		}
	}
}
