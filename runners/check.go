package runners

import (
	"context"

	"potato/api"
)

// CheckBackend is Supervisor.Check for who has no server: it needs the config and the runners alone.
func CheckBackend(ctx context.Context, o Options, name string, req api.CheckRequest) (api.CheckReport, error) {
	return (&Supervisor{o: o}).Check(ctx, name, req)
}
