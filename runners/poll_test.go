package runners_test

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
	"potato/project"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/store"
	"potato/trainers"
)

// elsewhere is the runner of agent backends with an agent that has claimed the run: it works by itself and tells the desk,
// whoever follows it.
type elsewhere struct {
	*runners.Poll
	t *testing.T
	m *otherMachine
}

// otherMachine is where the agent works.
type otherMachine struct {
	mu     sync.Mutex
	marker string
}

func (m *otherMachine) save(h api.Handle) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marker = h.Marker
	return nil
}

func (m *otherMachine) processes(api.Handle) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.marker == "" {
		return nil
	}
	return agenttest.Marked(m.marker)
}

// Start implements runners.Runner.
func (e *elsewhere) Start(ctx context.Context, j runners.Job) (api.Handle, error) {
	h, err := e.Poll.Start(ctx, j)
	if err != nil {
		return h, err
	}
	worker, err := trainers.Materialise(filepath.Join(e.t.TempDir(), "code"))
	must(e.t, err)
	working, leave := context.WithCancel(context.Background())
	var work sync.WaitGroup
	work.Go(func() {
		_ = agent.Work(working, j.Job, agent.Options{ // how it went, the desk knows
			Dir: filepath.Join(e.t.TempDir(), "job"), Desk: j.Desk, Backend: j.Backend, Python: runnertest.Python(e.t), WorkerPath: worker,
			Shim: agenttest.Shim(e.t), Save: e.m.save, Poll: 10 * time.Millisecond, HeartbeatEvery: 20 * time.Millisecond,
		})
	})
	e.t.Cleanup(func() {
		leave()
		work.Wait()
	})
	return h, nil
}

func TestPollKeepsTheContract(t *testing.T) {
	m := &otherMachine{}
	runnertest.Suite{
		Open: func(t *testing.T, c *project.Config) runners.Runner {
			db, err := store.Open(t.Context(), c.TrainingPath(), time.Now)
			must(t, err)
			t.Cleanup(func() { must(t, db.Close()) })
			_, err = db.IssueToken(t.Context(), "here", rand.Text())
			must(t, err)
			return &elsewhere{Poll: runners.NewPoll(runners.PollOptions{DB: db}), t: t, m: m}
		},
		Processes:   m.processes,
		Unreachable: true,
	}.Run(t)
}
