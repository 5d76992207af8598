package runners_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"potato/agent/agenttest"
	"potato/agent/slurmtest"
	"potato/api"
	"potato/runners"
	"potato/runners/hosts"
	"potato/runners/hosts/hoststest"
	"potato/runners/runnertest"
)

// scheduler is the package's cluster, started with the first test that needs it.
var scheduler struct {
	sync.Mutex
	*slurmtest.Cluster
}

func cluster(t *testing.T) *slurmtest.Cluster {
	t.Helper()
	slurmtest.Require(t)
	scheduler.Lock()
	defer scheduler.Unlock()
	if scheduler.Cluster == nil {
		c, err := slurmtest.Start(2, "")
		must(t, err)
		scheduler.Cluster = c
	}
	return scheduler.Cluster
}

// loginNode is a study with the slurm backend "cluster", whose login node is one of the rig's hosts.
func loginNode(t *testing.T, host string, lines ...string) (string, *slurmtest.Cluster) {
	t.Helper()
	c := cluster(t)
	remote := "potato-" + filepath.Base(bin(t, nil))
	t.Cleanup(func() {
		left, _ := filepath.Glob("/home/potato*/" + remote)
		for _, dir := range left {
			_ = os.RemoveAll(dir)
		}
	})
	text := fmt.Sprintf("  backends:\n    cluster:\n      type: slurm\n      host: %s\n      python: /usr/bin/python3\n      remote_dir: ~/%s\n      poll_interval_s: 1\n", host, remote)
	text += "      env: {SLURM_CONF: " + strings.TrimPrefix(c.Env[0], "SLURM_CONF=") + "}\n"
	for _, l := range lines {
		text += "      " + l + "\n"
	}
	return text, c
}

func checkCluster(t *testing.T, o runners.CheckOptions, host string, lines ...string) api.CheckReport {
	t.Helper()
	rig := hoststest.Get(t)
	text, _ := loginNode(t, host, lines...)
	s := runners.NewSSH(runners.SSHOptions{Config: runnertest.Study(t, text), Hosts: hosts.Options{ConfigFile: rig.Config}, Agent: "/bin/true"})
	o.Backend = "cluster"
	return s.Check(t.Context(), o)
}

func hasItem(r api.CheckReport, level api.CheckLevel, part string) bool {
	return slices.ContainsFunc(r.Items, func(i api.CheckItem) bool { return i.Level == level && strings.Contains(i.Text, part) })
}

// The check goes to the login node and asks the scheduler, which is a real one (Q6).
func TestSlurmCheck(t *testing.T) {
	t.Parallel()
	r := checkCluster(t, runners.CheckOptions{}, "target", "gres: gpu:1", "time: 5")
	for _, part := range []string{
		"sbatch, squeue and scancel are there", "partition short (the default): up", "2 of 2 nodes up, ", " of 4 GPUs free", "a job would start at 20",
		"in partition short", "jobs run /usr/bin/python3, which the login node has too", " on the login node",
	} {
		if !hasItem(r, api.CheckOK, part) {
			t.Errorf("no finding says %q: %+v", part, r.Items)
		}
	}
	if !r.OK || !strings.Contains(r.Summary, "jobs with gpu:1") || !hasItem(r, api.CheckWarn, "--probe") {
		t.Errorf("got %v %q", r.OK, r.Summary)
	}
}

func TestSlurmCheckSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		line, want string
	}{
		"no such partition": {"partition: nosuch", "sbatch refuses a job with these settings: Invalid partition name specified"},
		"too many GPUs":     {"gres: gpu:5", "sbatch refuses a job with these settings: Requested node configuration is not available"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := checkCluster(t, runners.CheckOptions{}, "target", c.line)
			if r.OK || !hasItem(r, api.CheckFail, c.want) {
				t.Errorf("got %v %+v, want %q", r.OK, r.Items, c.want)
			}
		})
	}
}

// A host without the scheduler's commands is no login node, and neither a check nor a run gets further (Q1).
func TestSlurmMissing(t *testing.T) {
	t.Parallel()
	tools := bin(t, nil)
	for _, name := range strings.Fields("awk cat chmod date df dirname env grep hostname id ls mkdir mktemp mv rm sed sh sleep squeue tail uname") {
		path, err := exec.LookPath(name)
		must(t, err)
		must(t, os.Symlink(path, filepath.Join(tools, name)))
	}
	const want = "target has no sbatch on PATH, so it cannot submit jobs"
	text, _ := loginNode(t, "target")
	text = strings.Replace(text, "env: {", "env: {PATH: "+tools+", ", 1)
	c := runnertest.Study(t, text)
	s := runners.NewSSH(runners.SSHOptions{Config: c, Hosts: hosts.Options{ConfigFile: hoststest.Get(t).Config}, Agent: "/bin/true"})
	if r := s.Check(t.Context(), runners.CheckOptions{Backend: "cluster"}); r.OK || !hasItem(r, api.CheckFail, want) {
		t.Errorf("got %+v", r)
	}
	_, err := s.Start(t.Context(), runners.Job{
		Job: api.Job{RunID: "r"}, Backend: "cluster", Save: func(api.Handle) error { return nil }, Step: func(string) {}, Say: func(string) {},
	})
	if wantCode(t, err, "slurm_missing"); api.AsError(err).Message != want {
		t.Errorf("got %v", err)
	}
}

// --probe runs a job on a compute node with job_python and prelude (Q6).
func TestSlurmProbe(t *testing.T) {
	t.Parallel()
	t.Run("works", func(t *testing.T) {
		t.Parallel()
		r := checkCluster(t, runners.CheckOptions{Probe: true, Trainer: runnertest.Trainer}, "target-tcsh", "prelude: [\"export MARK='it''s here'\"]")
		if !r.OK || !hasItem(r, api.CheckOK, " ran on a compute node: Python 3.") || !hasItem(r, api.CheckOK, runnertest.Trainer+" can train there") {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("notices around the id", func(t *testing.T) {
		t.Parallel()
		wrap := bin(t, map[string]string{"sbatch": "#!/bin/sh\necho '*** Welcome to 1 cluster'\n/usr/bin/sbatch \"$@\" || exit\necho bye\n"})
		text, _ := loginNode(t, "target", "prelude: [cd /]")
		text = strings.Replace(text, "env: {", "env: {PATH: \""+wrap+":/usr/bin:/bin\", ", 1)
		s := runners.NewSSH(runners.SSHOptions{Config: runnertest.Study(t, text), Hosts: hosts.Options{ConfigFile: hoststest.Get(t).Config}, Agent: "/bin/true"})
		r := s.Check(t.Context(), runners.CheckOptions{Backend: "cluster", Probe: true, Trainer: runnertest.Trainer})
		if !r.OK || !hasItem(r, api.CheckOK, " ran on a compute node: Python 3.") || hasItem(r, api.CheckOK, "Welcome") {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("no such interpreter", func(t *testing.T) {
		t.Parallel()
		r := checkCluster(t, runners.CheckOptions{Probe: true}, "target", "job_python: /opt/none/python3")
		if r.OK || !hasItem(r, api.CheckFail, "/opt/none/python3 was not found on the compute node") {
			t.Errorf("got %+v", r)
		}
	})
	t.Run("prelude fails", func(t *testing.T) {
		t.Parallel()
		r := checkCluster(t, runners.CheckOptions{Probe: true}, "target", "prelude: [module load nosuch-9]")
		if r.OK || !hasItem(r, api.CheckFail, "the line of prelude failed: module load nosuch-9") {
			t.Errorf("got %+v", r)
		}
	})
}

// Whoever leaves a check with --probe leaves no job and no folder on the cluster.
func TestSlurmProbeIsLeft(t *testing.T) {
	t.Parallel()
	text, c := loginNode(t, "target", "sbatch_args: [\"--begin=now+600\", \"--comment=left\"]")
	s := runners.NewSSH(runners.SSHOptions{Config: runnertest.Study(t, text), Hosts: hosts.Options{ConfigFile: hoststest.Get(t).Config}, Agent: "/bin/true"})
	ctx, leave := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Check(ctx, runners.CheckOptions{Backend: "cluster", Probe: true})
	}()
	jobs := func() string {
		out, err := c.Command("squeue", "-h", "-n", "potato-check", "-o", "%i %k %T")
		must(t, err)
		var mine []string
		for line := range strings.Lines(out) {
			if strings.Contains(line, " left ") {
				mine = append(mine, strings.TrimSpace(line))
			}
		}
		return strings.Join(mine, "; ")
	}
	agenttest.Wait(t, "the job to be submitted", func() (bool, string) { return jobs() != "", "no job" })
	leave()
	<-done
	agenttest.Wait(t, "the job to be cancelled", func() (bool, string) { return jobs() == "", jobs() })
}
