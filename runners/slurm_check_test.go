package runners

import (
	"fmt"
	"strings"
	"testing"

	"potato/api"
	"potato/project"
)

func TestPartitions(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		want  []string
	}{
		"one kind of nodes": {
			[]string{"short*|up|1:00:00|4|gpu:2|gpu:0|idle|"},
			[]string{"partition short (the default): up, jobs of up to 1:00:00, 4 of 4 nodes up, 8 of 8 GPUs free"},
		},
		"several kinds, some away": {
			[]string{
				"gpu|up|2-00:00:00|2|gpu:a100:4(S:0-1)|gpu:a100:3(IDX:0-2)|mixed|", "gpu|up|2-00:00:00|1|gpu:a100:4(S:0-1)|gpu:a100:0|down*|",
				"gpu|up|2-00:00:00|1|gpu:a100:4|gpu:a100:0|drained|", "gpu|up|2-00:00:00|1|gpu:a100:4|gpu:a100:4|allocated|",
			},
			[]string{"partition gpu: up, jobs of up to 2-00:00:00, 3 of 5 nodes up, 2 of 20 GPUs free"},
		},
		"no GPUs":           {[]string{"cpu|up|infinite|10|(null)|gpu:0|idle|"}, []string{"partition cpu: up, jobs of up to infinite, 10 of 10 nodes up"}},
		"two kinds of GPUs": {[]string{"mix|up|1:00|1|gpu:a100:2,gpu:v100:1,shard:8|gpu:a100:1(IDX:0),gpu:v100:0|mixed-|"}, []string{"partition mix: up, jobs of up to 1:00, 1 of 1 nodes up, 2 of 3 GPUs free"}},
		"no table":          {[]string{"slurm_load_partitions: Unable to contact slurm controller (connect failure)", "a|b|c|x|e|f|g|"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range partitions(c.lines) {
				got = append(got, p.String())
			}
			if fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// The texts are Slurm 22.05's own.
func TestWhenAJobWouldStart(t *testing.T) {
	b := project.Backend{Host: "login.example.org"}
	for name, c := range map[string]struct {
		rc, said string
		level    api.CheckLevel
		want     string
	}{
		"soon": {
			"0", "sbatch: Job 32 to start at 2026-11-29T19:23:35 using 1 processors on nodes node[01-04] in partition short",
			api.CheckOK, "a job would start at 2026-11-29 19:23:35 (the cluster's clock) in partition short",
		},
		"a note of the site beside": {
			"0", "sbatch: note: long jobs wait longer\nsbatch: Job 3 to start at 2026-11-29T19:23:35 using 1 processors on nodes node01 in partition long",
			api.CheckOK, "a job would start at 2026-11-29 19:23:35 (the cluster's clock) in partition long",
		},
		"partition down": {
			"0", "sbatch: Job 32 to start at 2026-11-29T19:23:35 using 1 processors on nodes node01 in partition down",
			api.CheckFail, "no job starts in partition down, which is down",
		},
		"no such partition": {
			"1", "sbatch: error: invalid partition specified: nosuch\nallocation failure: Invalid partition name specified",
			api.CheckFail, "sbatch refuses a job with these settings: Invalid partition name specified",
		},
		"no flag of sbatch": {"255", "sbatch: error: Invalid --time specification", api.CheckFail, "sbatch refuses a job with these settings: Invalid --time specification"},
		"controller away": {
			"1", "allocation failure: Unable to contact slurm controller (connect failure)", api.CheckFail, "the scheduler of login.example.org does not answer",
		},
		"cut off":  {"124", "", api.CheckFail, "the scheduler of login.example.org does not answer"},
		"nothing":  {"2", "", api.CheckFail, "sbatch refuses a job with these settings: exit status 2"},
		"unknown":  {"0", "sbatch: hello", api.CheckWarn, "when a job would start, sbatch does not say: hello"},
		"terminal": {"1", "sbatch: error: \x1b[31mno", api.CheckFail, "sbatch refuses a job with these settings:  [31mno"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &report{}
			judgeStart(r, b, c.rc, strings.Split(c.said, "\n"), []partition{{name: "long" + theDefault, available: "up"}, {name: "down", available: "down"}})
			if len(r.Items) != 1 || r.Items[0].Level != c.level || r.Items[0].Text != c.want {
				t.Errorf("got %+v, want %s %q", r.Items, c.level, c.want)
			}
		})
	}
}

// A slurm backend has no packages of its own to install (C5).
func TestMissingPackagesHint(t *testing.T) {
	for kind, want := range map[api.BackendType]string{
		api.BackendSSH:   "point `python` at an interpreter that has torch, or list them under `packages`",
		api.BackendSlurm: "point `job_python` at an interpreter that has torch",
	} {
		r := &report{}
		judgeTrainers(r, project.Backend{Type: kind}, []api.Trainer{{Name: "deep", MissingPackages: []string{"torch"}}}, "deep")
		if len(r.Items) != 1 || r.Items[0].Hint != want {
			t.Errorf("%s: got %+v, want the hint %q", kind, r.Items, want)
		}
	}
}
