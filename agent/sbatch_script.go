package agent

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"potato/api"
)

// The files of a job directory that a SLURM job has beside the others. job.sh writes the claim, the attempt and, where
// its shim cannot, exit_code; the scheduler writes slurm.out.
const (
	jobScript   = "job.sh"
	jobEnvFile  = "job.env"     // values, readable by the account alone
	shimFile    = "shim.json"   // what the shim reads
	submitFile  = "submit.json" // what another agent must know
	claimFile   = "claim"       // a link whose target is the id of the job that has the run
	attemptFile = "attempt"     // job id, restarts, attempt and nodes of the attempt that runs or ran last
	slurmOut    = "slurm.out"
)

// claimCancelled stands in a claim that no job shall win any more.
const claimCancelled = "cancelled"

// submittedNote is the content of submit.json.
type submittedNote struct {
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

//go:embed job.sh.tmpl
var jobTemplate string

type jobPrelude struct{ Line, JSON string }

// writeJob writes what the job needs of us. The script is self-contained: sbatch carries nothing of our environment.
func (s *Sbatch) writeJob(l Launch, marker string) error {
	c := s.o.Config
	lease, leaseFile := l.LeaseTimeout+s.o.LeaseSlack, l.LeaseFile
	if c.Detach {
		lease, leaseFile = 0, ""
	}
	python := l.Python
	if c.JobPython != "" {
		python = c.JobPython
	}
	start := shimStart{
		Argv: []string{python, l.WorkerPath, "--spec", l.Spec}, Env: ThreadEnv([]string{"PYTHONUNBUFFERED=1", "MPLBACKEND=Agg"}, l.NumThreads), Marker: marker,
		Slurm: true, Ranks: c.NTasksPerNode,
		Job: shimJob{
			Dir: l.Dir, Spec: l.Spec, LeaseFile: leaseFile, LeaseTimeoutS: lease.Seconds(), GraceS: l.Grace.Seconds(), MaxRAMMB: l.MaxRAMMB,
		},
	}
	script, err := s.script(l)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{jobEnvFile: envScript(c.Env), jobScript: script} {
		if err := WriteFile(filepath.Join(l.Dir, name), content, true); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	if err := os.Chmod(filepath.Join(l.Dir, jobScript), 0o700); err != nil {
		return err
	}
	// The scheduler makes this file too, with whatever the umask of sbatch allows.
	if out, err := os.OpenFile(filepath.Join(l.Dir, slurmOut), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
		return err
	} else if err := out.Close(); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(l.Dir, shimFile), start, true); err != nil {
		return err
	}
	return writeJSON(filepath.Join(l.Dir, submitFile), submittedNote{Name: jobName(l.RunID), At: time.Now()}, true)
}

func (s *Sbatch) script(l Launch) ([]byte, error) {
	t, err := template.New(jobScript).Funcs(template.FuncMap{"quote": shellQuote}).Parse(jobTemplate)
	if err != nil {
		return nil, err
	}
	var prelude []jobPrelude
	for _, line := range s.o.Config.Prelude {
		b, err := json.Marshal(line)
		if err != nil {
			return nil, err
		}
		prelude = append(prelude, jobPrelude{line, string(b)})
	}
	var argv []string
	for _, arg := range l.Shim {
		argv = append(argv, shellQuote(arg))
	}
	var out bytes.Buffer
	err = t.Execute(&out, struct {
		RunID   api.RunID
		Dir     string
		Attempt int
		Prelude []jobPrelude
		Shim    string
	}{l.RunID, l.Dir, max(l.Attempt, 1), prelude, strings.Join(argv, " ")})
	return out.Bytes(), err
}

func envScript(env map[string]string) []byte {
	var b strings.Builder
	for _, kv := range setEnv(nil, pairs(env)...) {
		name, value, _ := strings.Cut(kv, "=")
		b.WriteString("export " + name + "=" + shellQuote(value) + "\n")
	}
	return []byte(b.String())
}

func pairs(env map[string]string) (kvs []string) {
	for name, value := range env {
		kvs = append(kvs, name+"="+value)
	}
	return kvs
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
