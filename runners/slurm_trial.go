package runners

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners/hosts"
)

//go:embed slurm_trial.sh
var trialScript string

//go:embed slurm_trial_job.sh
var trialJob string

// trialTime is how long a check waits for its job of one minute, the scheduler's queue included.
const trialTime = 3 * time.Minute

// trial is what became of the job.
type trial struct {
	job, state string
	refused    []string
	output     []string // last lines of slurm.out
	facts      hostFacts
}

// judgeTrial submits a job with the backend's settings that imports the trainers' packages on a compute node (Q6).
func (s *SSH) judgeTrial(ctx context.Context, c *hosts.Conn, r *report, b project.Backend, f hostFacts, o CheckOptions) error {
	t, err := s.try(ctx, c, b, f)
	if err != nil {
		return err
	}
	if t.facts.told["python"] {
		nodes := b
		nodes.Python, nodes.Host = jobPython(b), "the compute node"
		if err := t.facts.pythonError(nodes); err != nil {
			text, hint := asText(err)
			r.add(api.CheckFail, "probe", strings.ReplaceAll(hint, "`python`", "`job_python`"), "%s", text)
			return nil
		}
		r.add(api.CheckOK, "probe", "", "SLURM job %s ran on a compute node: Python %s (%s)", t.job, t.facts.Said.Python, t.facts.Python)
		judgeTrainers(r, nodes, t.facts.Said.Trainers, o.Trainer)
		return nil
	}
	t.failed(r)
	return nil
}

// failed says why the job brought no answer.
func (t trial) failed(r *report) {
	last := func(lines []string) string {
		for _, line := range slices.Backward(lines) {
			if line = strings.TrimSpace(line); line != "" {
				return api.Printable(line)
			}
		}
		return ""
	}
	switch {
	case len(t.refused) > 0:
		r.add(api.CheckFail, "probe", hints["slurm_refused"], "sbatch refused the probe job: %s", last(t.refused))
	case t.job == "":
		r.add(api.CheckFail, "probe", "", "the probe job could not be submitted")
	case t.state != "":
		r.add(api.CheckWarn, "probe", "check again with --probe when the cluster is less busy", "the probe job %s was %s after %s and is cancelled", t.job, t.state, trialTime)
	default:
		r.add(api.CheckFail, "probe", "see that `remote_dir` is on storage that the compute nodes share, and that `prelude` works there",
			"the probe job %s ended without an answer: %s", t.job, cmp.Or(last(t.output), "it left no output"))
	}
}

func (s *SSH) try(ctx context.Context, c *hosts.Conn, b project.Backend, f hostFacts) (trial, error) {
	code, err := s.packedCode()
	if err != nil {
		return trial{}, err
	}
	env := s.env(b)
	var exports strings.Builder
	for _, name := range slices.Sorted(maps.Keys(env)) {
		exports.WriteString("export " + name + "=" + hosts.Quote(env[name]) + "\n")
	}
	var prelude strings.Builder
	for _, line := range b.Prelude {
		prelude.WriteString("eval " + hosts.Quote(line) + " || { echo " + hosts.Quote("the line of prelude failed: "+line) + "; exit 1; }\n")
	}
	job := hostPaths + strings.NewReplacer("@PRELUDE@\n", prelude.String(), "@PYTHON@", hosts.Quote(jobPython(b))).Replace(trialJob)
	for name, value := range map[string]string{
		"probe_dir": f.Dir, "probe_program": probeProgram, "probe_job": job, "probe_job_env": exports.String(),
		"probe_flags": quoteWords(s.slurmConfig(b).Flags()), "probe_seconds": strconv.Itoa(int(trialTime.Seconds()) - 10),
	} {
		env[name] = value
	}
	// It stays when we leave, for a moment: it has a job to cancel.
	a, err := c.Run(ctx, hosts.Script{Text: strings.Replace(trialScript, "@CODE@", code, 1), Env: env, Stays: true})
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return trial{}, err
	}
	t := trial{facts: readFacts(string(a.Out))}
	for line := range strings.Lines(string(a.Out)) {
		section, text, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch section {
		case "job":
			t.job = text
		case "state":
			t.state = text
		case "refused":
			t.refused = append(t.refused, text)
		case "output":
			t.output = append(t.output, text)
		}
	}
	return t, nil
}
