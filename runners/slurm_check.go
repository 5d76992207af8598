package runners

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners/hosts"
)

//go:embed slurm_queue.sh
var slurmQueue string

// judgeSlurm turns what a login node says into findings, and returns what a job would get (Q6).
//
// All but the job that o.Probe asks for ends with ctx; that job has long.
func (s *SSH) judgeSlurm(ctx, long context.Context, c *hosts.Conn, r *report, b project.Backend, f hostFacts, o CheckOptions) (device string, err error) {
	s.judgePlatform(r, f)
	s.judgeLoginPython(r, b, f, o)
	judgeDisk(r, b, f)
	s.judgeClock(r, f)
	device = "jobs without a GPU, since `gres` is not set"
	if gpus := cmp.Or(string(b.GRES), string(b.GPUsPerNode)); gpus != "" {
		device = "jobs with " + gpus
	}
	there, err := s.askSlurm(ctx, c, b)
	if err != nil {
		return device, err
	}
	if e := there.missing(b.Host); e != nil {
		r.add(api.CheckFail, "slurm", e.Hint, "%s", e.Message)
		return device, nil
	}
	r.add(api.CheckOK, "slurm", "", "sbatch, squeue and scancel are there (%s)", there.path["sbatch"])
	if there.path["scontrol"] == "" {
		r.add(api.CheckWarn, "slurm", "set PATH under `env` if it is elsewhere", "there is no scontrol on PATH, so the scheduler's reason for a job's end may stay unknown")
	}
	judgeJobPython(r, b, there)
	if err := s.judgeQueue(ctx, c, r, b); err != nil || !r.OK {
		return device, err
	}
	if !o.Probe {
		r.add(api.CheckWarn, "probe", "", "whether the compute nodes have the trainers' packages, a check with --probe finds out by a job of one minute")
		return device, nil
	}
	return device, s.judgeTrial(long, c, r, b, f, o)
}

// judgeLoginPython judges the login node's interpreter, which starts no worker but copies code and files.
func (s *SSH) judgeLoginPython(r *report, b project.Backend, f hostFacts, o CheckOptions) {
	if err := f.pythonError(b); err != nil {
		text, hint := asText(err)
		r.add(api.CheckFail, "python", hint, "%s", text)
		return
	}
	r.Python = f.Said.Python
	r.add(api.CheckOK, "python", "", "Python %s (%s) on the login node", f.Said.Python, f.Python)
	if o.Trainer != "" && !slices.ContainsFunc(f.Said.Trainers, func(t api.Trainer) bool { return t.Name == o.Trainer }) {
		r.add(api.CheckFail, "trainer", "listTrainers names those that are there", "there is no trainer '%s'", o.Trainer)
	}
}

func judgeJobPython(r *report, b project.Backend, f slurmFacts) {
	name := jobPython(b)
	where := ", which the login node has too"
	if f.jobPython == "" {
		where = ", which the login node does not have"
	}
	r.add(api.CheckOK, "job_python", "", "jobs run %s%s", name, where)
}

// judgeQueue says what partitions there are, and when a job such as a run's would start.
func (s *SSH) judgeQueue(ctx context.Context, c *hosts.Conn, r *report, b project.Backend) error {
	env := s.env(b)
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(checkTime)
	}
	env["probe_seconds"] = strconv.Itoa(max(1, int(time.Until(deadline).Seconds())/2))
	env["probe_flags"] = quoteWords(s.slurmConfig(b).Flags())
	a, err := c.Run(ctx, hosts.Script{Text: slurmQueue, Env: env})
	if err != nil {
		return err
	}
	var sinfo, start []string
	rc := ""
	for line := range strings.Lines(string(a.Out)) {
		section, text, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		switch section {
		case "partition":
			sinfo = append(sinfo, text)
		case "start":
			start = append(start, text)
		case "start_rc":
			rc = text
		}
	}
	all := partitions(sinfo)
	for _, p := range all {
		r.add(api.CheckOK, "partition", "", "%s", p)
	}
	judgeStart(r, b, rc, start, all)
	return nil
}

var wouldStart = regexp.MustCompile(`Job \d+ to start at (\S+) using .* on nodes? (\S+) in partition (\S+)`)

// judgeStart reads the answer of sbatch --test-only.
func judgeStart(r *report, b project.Backend, rc string, said []string, all []partition) {
	text := strings.Join(said, "\n")
	if m := wouldStart.FindStringSubmatch(text); rc == "0" && m != nil {
		// sbatch answers as if the partition were up.
		if i := slices.IndexFunc(all, func(p partition) bool { return p.is(m[3]) }); i >= 0 && all[i].available != "up" {
			r.add(api.CheckFail, "start", "choose another `partition`, or wait until the cluster's admins bring it up", "no job starts in partition %s, which is %s", m[3], all[i].available)
			return
		}
		r.add(api.CheckOK, "start", "", "a job would start at %s (the cluster's clock) in partition %s", strings.Replace(m[1], "T", " ", 1), m[3])
		return
	}
	if rc == "124" || rc == "137" || strings.Contains(text, "Unable to contact slurm controller") || strings.Contains(text, "Socket timed out") {
		r.add(api.CheckFail, "start", "wait until the cluster's controller is back; `sinfo` on "+b.Host+" tells", "the scheduler of %s does not answer", b.Host)
		return
	}
	why := ""
	for _, line := range said {
		line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "sbatch: "), "error: ")
		if line != "" {
			why = strings.TrimPrefix(line, "allocation failure: ")
		}
	}
	if rc == "0" {
		r.add(api.CheckWarn, "start", "", "when a job would start, sbatch does not say: %s", api.Printable(why))
		return
	}
	r.add(api.CheckFail, "start", hints["slurm_refused"], "sbatch refuses a job with these settings: %s", api.Printable(cmp.Or(why, "exit status "+rc)))
}

// partition is one of the scheduler's, over all its kinds of nodes.
type partition struct {
	name, available, limit string
	nodes, up              int
	gpus, free             int
}

func (p partition) is(name string) bool { return p.name == name || p.name == name+theDefault }

const theDefault = " (the default)"

func (p partition) String() string {
	text := fmt.Sprintf("partition %s: %s, jobs of up to %s, %d of %d nodes up", p.name, p.available, p.limit, p.up, p.nodes)
	if p.gpus > 0 {
		text += fmt.Sprintf(", %d of %d GPUs free", p.free, p.gpus)
	}
	return text
}

// partitions reads sinfo's lines: PARTITION|AVAIL|TIMELIMIT|NODES|GRES|GRES_USED|STATE|, one for each kind of node.
func partitions(lines []string) []partition {
	var all []partition
	for _, line := range lines {
		f := strings.Split(line, "|")
		if len(f) < 7 {
			continue
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		n, err := strconv.Atoi(f[3])
		if err != nil {
			continue
		}
		i := slices.IndexFunc(all, func(p partition) bool { return p.name == f[0] })
		if i < 0 {
			all = append(all, partition{name: f[0], available: f[1], limit: f[2]})
			i = len(all) - 1
		}
		p := &all[i]
		p.nodes += n
		p.gpus += n * gpusIn(f[4])
		if takesJobs(f[6]) {
			p.up += n
			p.free += n * max(0, gpusIn(f[4])-gpusIn(f[5]))
		}
	}
	for i := range all {
		if name, ok := strings.CutSuffix(all[i].name, "*"); ok {
			all[i].name = name + theDefault
		}
	}
	return all
}

// takesJobs reports whether nodes of a state work; a star means that they do not answer.
func takesJobs(state string) bool {
	if strings.HasSuffix(state, "*") {
		return false
	}
	state = strings.TrimRight(state, "-~#!%$@^+")
	return slices.Contains([]string{"idle", "mixed", "mix", "allocated", "alloc", "completing", "comp", "planned"}, state)
}

var gpuCount = regexp.MustCompile(`(?:^|,)gpu(?::[^:,()]+)?:(\d+)`)

// gpusIn counts the GPUs of a gres such as gpu:a100:4(S:0-1),gpu:v100:2 or gpu:2(IDX:0-1).
func gpusIn(gres string) int {
	n := 0
	for _, m := range gpuCount.FindAllStringSubmatch(brackets.ReplaceAllString(gres, ""), -1) {
		count, err := strconv.Atoi(m[1])
		if err == nil {
			n += count
		}
	}
	return n
}

var brackets = regexp.MustCompile(`\([^)]*\)`)

func quoteWords(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = hosts.Quote(w)
	}
	return strings.Join(quoted, " ")
}
