package agent_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"potato/agent"
	"potato/api"
)

var update = flag.Bool("update", false, "write golden files anew")

// everySetting has a value for each key of C5 that concerns the job.
const everySetting = `{
	"job_python": "/opt/py/bin/python3", "prelude": ["module load cuda/12"], "poll_interval_s": 5, "queue_timeout_s": 3600, "detach": true, "env": {"A": "1"},
	"partition": "gpu", "account": "acct", "qos": "high", "gres": "gpu:a100:2", "gpus_per_node": 2, "nodes": 2, "ntasks_per_node": 4, "cpus_per_task": 8,
	"mem": "32G", "mem_per_gpu": 16000, "time": "04:00:00", "constraint": "a100&nvlink", "nodelist": "node[01-02]", "exclude": "node03",
	"reservation": "course", "exclusive": true, "nice": 100, "licenses": "matlab:1", "deadline": "now+2hours", "requeue": true, "signal": "B:TERM@60",
	"mail_user": "me@example.org", "mail_type": "END,FAIL", "sbatch_args": ["--spread-job", "--tmp=10G"]
}`

// C5: every setting and the flag it becomes.
func TestSlurmFlags(t *testing.T) {
	t.Parallel()
	c := slurmConfig(t, everySetting)
	for i := range reflect.TypeFor[agent.SlurmConfig]().NumField() {
		if reflect.ValueOf(c).Field(i).IsZero() {
			t.Errorf("%s has no value in this test", reflect.TypeFor[agent.SlurmConfig]().Field(i).Name)
		}
	}
	golden(t, "slurm_flags.txt", strings.Join(c.Flags(), "\n")+"\n")

	for settings, want := range map[string]string{
		`{}`:                      "",
		`{"requeue": true}`:       "--requeue",
		`{"requeue": false}`:      "--no-requeue",
		`{"exclusive": false}`:    "",
		`{"nice": 0}`:             "--nice=0",
		`{"time": 60}`:            "--time=60",
		`{"sbatch_args": ["-H"]}`: "-H",
	} {
		if got := strings.Join(slurmConfig(t, settings).Flags(), " "); got != want {
			t.Errorf("%s: %q, want %q", settings, got, want)
		}
	}
}

// Q9: what is wrong with the file is one sentence.
func TestSlurmConfigIsRefusedInOneSentence(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`{"partiton": "gpu"}`:              `slurm.json: "partiton" (did you mean "partition"?) is no SLURM setting`,
		`{"zzz": 1, "tim": "1:00"}`:        `slurm.json: "tim" (did you mean "time"?), "zzz" are no SLURM settings`,
		`{"identity_file": "k"}`:           `slurm.json: "identity_file" is no SLURM setting`,
		`{"requeue": "yes"}`:               `slurm.json: requeue must be true or false and not a string`,
		`{"cpus_per_task": "8"}`:           `slurm.json: cpus_per_task must be a number and not a string`,
		`{"prelude": "module load x"}`:     `slurm.json: prelude must be a list of texts and not a string`,
		`{"prelude": ["a\nb"]}`:            `slurm.json: a line of prelude has a line break in it: "a\nb"`,
		`{"env": {"A B": "1"}}`:            `slurm.json: env names "A B", which is no name of a variable`,
		`{"sbatch_args": ["--array=1-9"]}`: `slurm.json: sbatch_args may not have --array, which the submission itself needs otherwise`,
		`{"sbatch_args": ["-a0-2"]}`:       `slurm.json: sbatch_args may not have -a, which the submission itself needs otherwise`,
		`["gpu"]`:                          `slurm.json: this is no JSON object of SLURM settings: json: cannot unmarshal array`,
		`{`:                                `slurm.json: this is no JSON object of SLURM settings: unexpected end of JSON input`,
	} {
		path := filepath.Join(t.TempDir(), "slurm.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := agent.ReadSlurmConfig(path)
		if err == nil || !strings.HasPrefix(err.Error(), want) || api.AsError(err).Kind != api.KindInvalid {
			t.Errorf("%s: %v, want %s", content, err, want)
		}
	}
	if _, err := agent.ReadSlurmConfig("/no/such/file"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a file that is not there: %v", err)
	}
}

// A hosted agent gets the settings as JSON; nothing may be lost on the way.
func TestSlurmConfigTravels(t *testing.T) {
	t.Parallel()
	want := slurmConfig(t, everySetting)
	b, err := json.Marshal(agent.HostedJob{Slurm: &want})
	if err != nil {
		t.Fatal(err)
	}
	var got agent.HostedJob
	if err := json.Unmarshal(b, &got); err != nil || got.Slurm == nil || !reflect.DeepEqual(*got.Slurm, want) {
		t.Errorf("%v: %+v, want %+v", err, got.Slurm, want)
	}
}

func slurmConfig(t *testing.T, content string) agent.SlurmConfig {
	t.Helper()
	path := filepath.Join(t.TempDir(), "slurm.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := agent.ReadSlurmConfig(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (-update writes it anew):\n%s", name, got)
	}
}
