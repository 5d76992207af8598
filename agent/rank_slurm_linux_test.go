package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"potato/agent/agenttest"
)

// submit runs the ranks of a job of two nodes as its script does, by srun; the status of srun is in the file status.
func (r *ranks) submit(args ...string) (id string) {
	r.Helper()
	self, err := os.Executable()
	if err != nil {
		r.Fatal(err)
	}
	// The nodes' names do not resolve: all of them are this machine.
	script := fmt.Sprintf(`#!/bin/sh
unset SLURM_EXPORT_ENV
export MASTER_ADDR=127.0.0.1 CUDA_VISIBLE_DEVICES= TMPDIR='%[1]s'
srun --ntasks-per-node=1 --kill-on-bad-exit=1 '%[2]s' rank --ranks 2 %[3]s '%[4]s' '%[5]s' --spec '%[1]s/spec.json' >'%[1]s/stdout' 2>'%[1]s/stderr'
echo $? >'%[1]s/.status'; mv '%[1]s/.status' '%[1]s/status'
`, r.dir, self, strings.Join(args, " "), r.python, r.worker)
	c := cluster(r.T)
	out, err := c.Command("sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=1", "--mem=100M", "--time=5", "--exclude="+ownNodes,
		"--output="+filepath.Join(r.dir, "slurm.out"), r.write("job.sh", script))
	if err != nil {
		r.Fatal(err)
	}
	id = strings.TrimSpace(out)
	r.Cleanup(func() { _, _ = c.Command("scancel", id) }) // it has mostly ended
	return id
}

// files are the contents of files of the job directory, empty for those that are not there.
func (r *ranks) files(names ...string) (contents []string) {
	for _, name := range names {
		b, _ := os.ReadFile(filepath.Join(r.dir, name)) // what is not there shows as empty
		contents = append(contents, string(b))
	}
	return contents
}

func (r *ranks) awaitStatus() (status, stderr string) {
	r.Helper()
	agenttest.Wait(r, "the end of the job", func() (bool, string) {
		said := r.files("status", "slurm.out", "stderr", "events.jsonl")
		return said[0] != "", join(said)
	})
	said := r.files("status", "stderr")
	return strings.TrimSpace(said[0]), said[1]
}

// Q10: two ranks on each of two nodes of a real cluster meet, and rank 0 alone reports.
func TestRanksMeetThroughSlurm(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, "")
	r.submit()
	status, stderr := r.awaitStatus()
	if status != "0" {
		t.Fatalf("status %s; %s", status, stderr)
	}
	if got, want := logs(r.events()), []string{"at 0", `met [[1, 1, 0, "2"], [2, 0, 1, "2"], [3, 1, 1, "2"]]`}; !slices.Equal(got, want) {
		t.Errorf("got the log %q, want %q", got, want)
	}
	if got := r.files("stdout")[0]; got != "printed by 0\n" {
		t.Errorf("standard output is %q", got)
	}
}

// A rank that fails on one node ends that of the other too, and the run says why.
func TestARankFailsInSlurm(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, "raise ValueError('shapes differ')")
	r.submit("--ranks", "1")
	status, stderr := r.awaitStatus()
	if status == "0" || !strings.Contains(stderr, "[rank 1] ValueError: shapes differ") {
		t.Errorf("status %s; %s", status, stderr)
	}
	events := r.events()
	if last := events[len(events)-1]; !strings.HasPrefix(last.Message, "Rank 1 failed: Trainer 'meeting' failed") {
		t.Errorf("the last event is %+v", last)
	}
}

// scancel reaches the ranks of every node.
func TestRanksAreCancelledInSlurm(t *testing.T) {
	t.Parallel()
	r := newRanks(t, true, stays)
	id := r.submit("--ranks", "1")
	r.await(`"at 0"`)
	pid := r.rank1()
	if _, err := cluster(t).Command("scancel", id); err != nil {
		t.Fatal(err)
	}
	r.await(`"code":"cancelled"`)
	agenttest.Wait(t, "the end of rank 1", func() (bool, string) {
		p, ok := stat(pid)
		return !ok || p.state == "Z", fmt.Sprint(pid, p)
	})
}

// A trainer that is not distributed is started on one of the nodes.
func TestOthersRunOnceInSlurm(t *testing.T) {
	t.Parallel()
	r := newRanks(t, false, "")
	r.submit()
	if status, stderr := r.awaitStatus(); status != "0" {
		t.Fatalf("status %s; %s", status, stderr)
	}
	if got, want := logs(r.events()), []string{"at None", "met []"}; !slices.Equal(got, want) {
		t.Errorf("got the log %q, want %q", got, want)
	}
}
