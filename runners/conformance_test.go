package runners_test

import (
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/project"
	"potato/runners"
	"potato/runners/runnertest"
)

func TestLocalKeepsTheContract(t *testing.T) {
	runnertest.Suite{
		Open: func(t *testing.T, c *project.Config) runners.Runner {
			return runners.NewLocal(runners.LocalOptions{
				Config: c, Python: runners.NewPython(c), Shim: agenttest.Shim(t), Poll: 10 * time.Millisecond,
			})
		},
		Processes: func(h api.Handle) []string {
			if h.Marker == "" {
				return nil
			}
			return agenttest.Marked(h.Marker)
		},
	}.Run(t)
}

func TestFakeKeepsTheContract(t *testing.T) {
	machine := &runnertest.Machine{}
	runnertest.Suite{
		Open: func(*testing.T, *project.Config) runners.Runner { return &runnertest.Fake{Machine: machine} },
	}.Run(t)
}
