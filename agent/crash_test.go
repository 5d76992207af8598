package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

// The desk over a socket, for an agent in a process of its own that can be killed.
type (
	served struct {
		d   *agenttest.Desk
		ctx context.Context
	}
	caller struct{ c *rpc.Client }
	// Message is exported as net/rpc asks for it.
	Message struct {
		Events []byte // JSON: gob knows no any
		Path   string
		Finish api.Finish
	}
)

func (s served) Progress(m Message, a *api.Answer) (err error) {
	var events []api.Event
	if err = json.Unmarshal(m.Events, &events); err == nil {
		*a, err = s.d.Progress(s.ctx, api.Job{}, events)
	}
	return err
}

func (s served) Heartbeat(_ Message, a *api.Answer) (err error) {
	*a, err = s.d.Heartbeat(s.ctx, api.Job{})
	return err
}

func (s served) Predictions(m Message, _ *api.Answer) error {
	return s.d.Predictions(s.ctx, api.Job{}, m.Path)
}

func (s served) Finish(m Message, _ *api.Answer) error {
	return s.d.Finish(s.ctx, api.Job{}, m.Finish)
}

func (c caller) call(ctx context.Context, method string, m Message) (a api.Answer, err error) {
	call := c.c.Go("Desk."+method, m, &a, make(chan *rpc.Call, 1))
	select {
	case <-call.Done:
		return a, call.Error
	case <-ctx.Done():
		return a, ctx.Err()
	}
}

func (c caller) Bundle(context.Context, api.Job, string) (string, error) { return "", nil }

func (c caller) Progress(ctx context.Context, _ api.Job, events []api.Event) (api.Answer, error) {
	b, err := json.Marshal(events)
	if err != nil {
		return api.Answer{}, err
	}
	return c.call(ctx, "Progress", Message{Events: b})
}

func (c caller) Heartbeat(ctx context.Context, _ api.Job) (api.Answer, error) {
	return c.call(ctx, "Heartbeat", Message{})
}

func (c caller) Predictions(ctx context.Context, _ api.Job, path string) error {
	_, err := c.call(ctx, "Predictions", Message{Path: path})
	return err
}

func (c caller) Finish(ctx context.Context, _ api.Job, f api.Finish) error {
	_, err := c.call(ctx, "Finish", Message{Finish: f})
	return err
}

const agentArg = "agent"

// order is what an agent process reads from stdin.
type order struct {
	Socket, Dir, Python, Worker string
	Shim                        []string
	Job                         api.Job
	Slurm                       *agent.SbatchOptions // nil: the worker is a process
}

// agentMain is the body of an agent process.
func agentMain() int {
	var o order
	if err := json.NewDecoder(os.Stdin).Decode(&o); err != nil {
		return 1
	}
	c, err := rpc.Dial("unix", o.Socket)
	if err != nil {
		return 1
	}
	options := agent.Options{
		Dir: o.Dir, Desk: caller{c}, Python: o.Python, WorkerPath: o.Worker, Shim: o.Shim, Poll: 5 * time.Millisecond, SendEvery: time.Millisecond,
	}
	if o.Slurm != nil {
		sbatch := agent.NewSbatch(*o.Slurm)
		defer sbatch.Close()
		options.Launcher = sbatch
	}
	err = agent.Work(context.Background(), o.Job, options)
	if err != nil {
		_, _ = io.WriteString(os.Stderr, err.Error())
		return 1
	}
	return 0
}

// The agent is killed (-9) at random moments until one comes through: no event is lost or comes twice, and the worker
// was started once (R6).
func TestAgentIsKilled(t *testing.T) {
	for seed := range uint64(5) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 2))
			b := newBench(t, append([]agenttest.Step{{"metrics", 60, 0.003}, {"print", "one\n"}}, agenttest.Good(5)...)...)
			kills := b.killAgents(nil, 50, func() time.Duration { return time.Duration(5+r.IntN(150)) * time.Millisecond })
			f := b.desk.Finished()
			if f == nil || f.ErrorCode != "" || strings.Count(string(b.desk.Stored()), "\n") != 5 {
				t.Fatalf("seed %d, %d agents: finish = %+v, want a success; events: %s", seed, kills, f, join(texts(b.desk.Events())))
			}
			wantMetrics(t, b.desk, 60)
			output, results := 0, 0
			for _, e := range b.desk.Events() {
				if e.Source == "stdout" {
					output++
				}
				if e.Event == api.EventResult {
					results++
				}
			}
			if output != 1 || results != 1 {
				t.Errorf("seed %d: %d pieces of output and %d results, want one of each", seed, output, results)
			}
			if n := begun(t, b.o.Dir); n != 1 {
				t.Errorf("seed %d: %d workers were started", seed, n)
			}
			b.gone()
		})
	}
}

// killAgents starts agents one after another and kills each after a while, until one has come through or there were
// enough of them. It returns how many there were.
func (b *bench) killAgents(slurm *agent.SbatchOptions, most int, after func() time.Duration) (kills int) {
	b.Helper()
	serving, stop := context.WithCancel(b.Context())
	server := rpc.NewServer()
	if err := server.RegisterName("Desk", served{b.desk, serving}); err != nil {
		b.Fatal(err)
	}
	socket := filepath.Join(b.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		b.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { server.ServeConn(conn) }) // ends with the agent's process
		}
	})
	for ; b.desk.Finished() == nil && kills < most; kills++ {
		b.job.NextSeq = b.desk.NextSeq()
		input, err := json.Marshal(order{socket, b.o.Dir, b.o.Python, b.o.WorkerPath, b.o.Shim, b.job, slurm})
		if err != nil {
			b.Fatal(err)
		}
		ctx, kill := context.WithTimeout(b.Context(), after())
		cmd := exec.CommandContext(ctx, os.Args[0], agentArg)
		cmd.Stdin = bytes.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err != nil && ctx.Err() == nil {
			b.Fatalf("agent: %v: %s", err, out)
		}
		kill()
	}
	if err := l.Close(); err != nil {
		b.Fatal(err)
	}
	stop()
	conns.Wait()
	return kills
}

// begun counts the claims of shims; those of agents have no pid.
func begun(t *testing.T, dir string) (n int) {
	t.Helper()
	for _, path := range glob(t, filepath.Join(dir, "shim.*.json")) {
		var c struct{ Pid int }
		readJSON(t, path, &c)
		if c.Pid > 0 {
			n++
		}
	}
	return n
}
