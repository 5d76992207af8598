package agent_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
)

// Another agent, on another login node, goes on with what is in the job directory.
func TestSlurmJobIsAdopted(t *testing.T) {
	for name, forget := range map[string]bool{"with its id": false, "by its name": true} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "go")
			b := newSlurmBench(t, nil, append([]agenttest.Step{{"status", "ready"}, {"wait", path}}, agenttest.Good(2)...)...)
			leave := b.startUntil()
			b.says("ready")
			id := b.id()
			leave()
			if forget { // its agent died before sbatch had answered, and before the job had started
				h := b.handle()
				h.SlurmJob = ""
				text, err := json.Marshal(h)
				must(t, err)
				must(t, os.WriteFile(filepath.Join(b.o.Dir, "handle.json"), text, 0o600))
				must(t, os.Remove(filepath.Join(b.o.Dir, "claim")))
			}
			b.launch(b.settings)
			b.job.NextSeq, b.job.Lease = b.desk.NextSeq(), "lease-2"
			done := b.start()
			touch(t, path)
			b.succeeds(b.ends(done))
			if ids := b.queue("%i"); ids != id {
				t.Errorf("jobs %s, want %s alone", ids, id)
			}
		})
	}
}

// The agent dies before it called sbatch: there is no job of that name, so it is submitted now.
func TestSlurmJobThatWasNeverSubmitted(t *testing.T) {
	b := newSlurmBench(t, nil, agenttest.Good(1)...)
	must(t, os.MkdirAll(b.o.Dir, 0o700))
	h := api.Handle{Backend: "local", Dir: b.o.Dir, Host: "login1", Marker: "never"}
	text, err := json.Marshal(h)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(b.o.Dir, "handle.json"), text, 0o600))
	must(t, os.WriteFile(filepath.Join(b.o.Dir, "submit.json"), []byte(`{"name":"potato-`+string(b.job.RunID)+`"}`), 0o600))
	b.succeeds(b.ends(b.start()))
}

// Q10: the scheduler requeues the job, and the run goes on as its second attempt.
func TestSlurmRequeue(t *testing.T) {
	yes := true
	for name, c := range map[string]struct {
		change func(c *agent.SlurmConfig)
		again  func(b *slurmBench)
	}{
		"by hand": {func(*agent.SlurmConfig) {}, func(b *slurmBench) { b.scontrol("requeue", b.id()) }},
		"after a node failure": {
			func(c *agent.SlurmConfig) { c.Exclude, c.NodeList = "", returningNode },
			func(b *slurmBench) { b.scontrol("update", "nodename="+returningNode, "state=down", "reason=pulled") },
		},
		"after a preemption": {
			func(c *agent.SlurmConfig) {
				c.Exclude, c.NodeList, c.Partition, c.CPUsPerTask = "", sharedNode, "low", 4
			},
			func(b *slurmBench) { b.preempt(sharedNode) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "go")
			b := newSlurmBench(t, func(s *agent.SlurmConfig) { s.Requeue = &yes; c.change(s) },
				append([]agenttest.Step{{"on_term", "report"}, {"metrics", 3}, {"status", "ready"}, {"wait", path}}, agenttest.Good(1)...)...)
			done := b.start()
			b.says("ready")
			c.again(b)
			b.says("SLURM job " + b.id() + ": PENDING (BeginTime)")
			wait(t, "the second attempt", func() (bool, string) {
				events := b.desk.Events()
				e := events[len(events)-1]
				return e.Attempt == 2 && e.StepText() == "ready", fmt.Sprintf("%s\n%s\n%+v", strings.Join(b.log(), "\n"), b.queue("%T %r"), b.desk.Finished())
			})
			touch(t, path)
			b.succeeds(b.ends(done))
			metrics := map[int]int{}
			for _, e := range b.desk.Events() {
				if e.Event == api.EventMetric {
					metrics[e.Attempt]++
				}
			}
			if metrics[1] != 3 || metrics[2] != 3 {
				t.Errorf("metrics of each attempt: %v", metrics)
			}
			if ids := strings.Fields(b.queue("%i")); len(ids) != 1 {
				t.Errorf("jobs %v", ids)
			}
		})
	}
}

// A node that was taken for dead lives on: its attempt must not go on beside the next, nor write the run's end.
func TestSlurmEarlierAttemptIsFenced(t *testing.T) {
	b := newSlurmBench(t, nil, sleeper...)
	leave := b.startUntil()
	b.says("ready")
	leave()
	id, err := strconv.Atoi(b.id())
	must(t, err)
	must(t, os.WriteFile(filepath.Join(b.o.Dir, "attempt"), []byte(strconv.Itoa(id)+" 1 2 node03\n"), 0o600))
	b.until("COMPLETED")
	b.gone()
	if exists(filepath.Join(b.o.Dir, "exit_code")) {
		text, _ := os.ReadFile(filepath.Join(b.o.Dir, "exit_code"))
		t.Errorf("it wrote %s", text)
	}
}

// The agent on the login node is killed at random moments, while it submits too: one job trains, and nothing is lost (T05).
func TestSlurmAgentIsKilled(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 3))
			dir := t.TempDir()
			b := newSlurmBench(t, once(dir), append([]agenttest.Step{{"metrics", 60, 0.003}}, agenttest.Good(5)...)...)
			after := 100 * time.Millisecond
			kills := b.killAgents(&b.settings, 40, func() time.Duration {
				after += 50 * time.Millisecond // one has the time in the end
				return time.Duration(r.Int64N(int64(after)))
			})
			f := b.desk.Finished()
			if f == nil || f.ErrorCode != "" || strings.Count(string(b.desk.Stored()), "\n") != 5 {
				t.Fatalf("seed %d, %d agents: %+v\n%s\n%s", seed, kills, f, strings.Join(b.log(), "\n"), b.queue("%i %T %r"))
			}
			t.Logf("%d agents", kills)
			wantMetrics(t, b.desk, 60)
			if jobs := glob(t, filepath.Join(dir, "[0-9]*")); len(jobs) != 1 {
				t.Errorf("seed %d: %v trained", seed, jobs)
			}
			b.gone()
		})
	}
}

// Q10: a job on two nodes starts its workers by srun, and refuses clearly where there is none.
func TestSlurmSeveralNodes(t *testing.T) {
	for name, has := range map[string]bool{"with srun": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			b := newSlurmBench(t, func(c *agent.SlurmConfig) {
				c.Nodes = "2"
				if has {
					c.Env["PATH"] += ":/usr/bin"
				}
			}, agenttest.Good(2)...)
			f := b.ends(b.start())
			if !has {
				b.blames(f, "slurm_missing", "has no srun on PATH, which starts the workers of a job on 2 nodes", "`nodes`")
				return
			}
			b.succeeds(f)
		})
	}
}
