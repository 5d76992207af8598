package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"potato/api"
)

// outcome is what is reported of a job: its end, and the predictions when there are some. It is kept in finish.json
// until the server has it.
type outcome struct {
	Finish      api.Finish `json:"finish"`
	Predictions string     `json:"predictions"` // path of the file; empty: none
}

// decide says how a job ended, from all that is known. Why we ended the worker comes first, then why its shim did, then
// what the worker itself said, then what its exit and its stderr show.
func (w *work) decide(s State, end ending) outcome {
	stderr := stderrTail(w.o.Dir)
	o := w.ended(s, stderr)
	f := &o.Finish
	exit := s.Exit
	said, result := w.out.failed, w.out.result
	switch {
	case end.cancelled:
		f.Cancelled = true
	case end.lost:
		f.Cancelled = true
		blame(f, unreachable(w.o.ServerLossTimeout))
	case end.disk != nil:
		blame(f, w.noSpace(end.disk))
	case s.Cause != nil && result == nil && (said == nil || said.Code == "cancelled" || s.Cause.Code == "out_of_memory"):
		blame(f, s.Cause)
	case s.Phase == StateLost || s.Phase == StateUnstarted:
		blame(f, killed("The worker was killed together with the process that looked after it"))
	case exit.Reason == ReasonOutOfMemory:
		blame(f, api.Unavailablef("out_of_memory", "%s", exit.Message).
			WithHint("raise `max_ram_mb`, train on fewer items or features, or on a machine with more memory"))
	case exit.Reason == ReasonServerLost:
		blame(f, api.Unavailablef("server_restarted", "The server was away for more than %.0f s, so the worker was ended on its machine", w.o.LeaseTimeout.Seconds()).
			WithHint("start the run again; a higher `heartbeat_timeout_s` bridges longer absences"))
	case exit.Reason == ReasonStartFailed:
		blame(f, api.Unavailablef("start_failed", "%s", exit.Message).WithHint("set `%s` to an interpreter that works", w.o.PythonKey))
	case exit.Reason == ReasonNoPython:
		blame(f, api.Unavailablef("python_missing", "%s", exit.Message).WithHint("set `%s` to an interpreter that exists there", w.o.PythonKey))
	case exit.Reason == ReasonNoSrun:
		blame(f, api.Unavailablef("slurm_missing", "%s", exit.Message).WithHint("train on one node: take `nodes` out, or set it to 1"))
	case exit.Reason == ReasonPrelude:
		blame(f, preludeFailed(exit, w.o.Dir))
	case said != nil && said.Code == "cancelled" && result == nil:
		// Nobody here asked for it, so someone sent the worker a signal.
		blame(f, killed("The worker was told to stop by a signal from outside of this program"))
	case said != nil && said.Code != "cancelled":
		blame(f, w.workersWords(*said))
	case result != nil:
		o.Predictions = w.predictions(*result, f)
	default:
		blame(f, w.unexplained(exit, stderr))
	}
	if f.ErrorCode == "missing_dependency" && w.o.PythonKey == "job_python" { // there are no `packages` on a cluster
		f.Hint = "mend the environment of `job_python` on the compute nodes, so that it has the package"
	}
	return o
}

func preludeFailed(exit Exit, dir string) *api.Error {
	return api.Unavailablef("prelude_failed", "The prelude line `%s` failed with exit code %d%s", cut(exit.Message, 500), deref(exit.Code), quoted(slurmTail(dir))).
		WithHint("mend the line in `prelude`; it runs in a login shell on the compute node, and what it printed is in slurm.out")
}

// ended is an outcome with what is reported of every end.
func (w *work) ended(s State, stderr []string) outcome {
	if len(stderr) == 0 { // what a SLURM job said before its worker began
		if out := strings.TrimSpace(slurmTail(w.o.Dir)); out != "" {
			stderr = strings.Split(out, "\n")
		}
	}
	f := api.Finish{
		ExitCode: s.Exit.Code, ArtifactURI: w.o.ArtifactURI, Stderr: stderr[max(0, len(stderr)-lastLines):],
		Host: cmp.Or(w.handle.Host, hostname()), Environment: map[string]string{},
	}
	if r := w.out.result; r != nil {
		maps.Copy(f.Environment, r.Packages)
		for name, value := range map[string]string{"python": r.Python, "device": r.Device} {
			if value != "" {
				f.Environment[name] = value
			}
		}
	}
	for name, value := range map[string]string{"slurm_job": s.Exit.SlurmJob, "node": s.Exit.Node} {
		if value != "" {
			f.Environment[name] = value
		}
	}
	if mb := s.Exit.MaxRSSMB; mb > 0 {
		f.Environment["peak_memory_mb"] = strconv.FormatInt(mb, 10)
	}
	return outcome{Finish: f}
}

// failure is the outcome of a job whose worker could not be started.
func (w *work) failure(err error) outcome {
	o := w.ended(State{}, nil)
	e := api.AsError(err)
	switch {
	case isDiskFull(err):
		e = w.noSpace(err)
	case e.Code == "python_missing": // whoever found that knows the key of local runs alone
		e = e.WithHint("set `%s` to an interpreter that exists there", w.o.PythonKey)
	case e.Kind == api.KindInternal:
		// The text is of the operating system and says what is wrong with this machine.
		e = api.Unavailablef("start_failed", "The worker could not be started: %v", err)
	}
	blame(&o.Finish, e)
	return o
}

// removed is the outcome of a job whose directory somebody has removed under it.
func (w *work) removed() outcome {
	o := w.ended(State{}, nil)
	blame(&o.Finish, api.Unavailablef("worker_failed", "The folder %s was removed while the run was in it", w.o.Dir).
		WithHint("start the run again, and leave the folders of runs alone while they train"))
	return o
}

func blame(f *api.Finish, e *api.Error) { f.ErrorCode, f.Error, f.Hint = e.Code, e.Message, e.Hint }

func (w *work) noSpace(err error) *api.Error {
	return api.Unavailablef("disk_full", "No space is left on the disk of %s", w.o.Dir).WithHint("free some space there and train again").WithCause(err)
}

func killed(message string) *api.Error {
	return api.Unavailablef("killed", "%s", message).
		WithHint("often the machine ran out of memory: look at `dmesg`, set `max_ram_mb`, or train on fewer items")
}

// workerCodes are those of a run's error codes that a worker may use; what else it says is worker_failed.
var workerCodes = []string{
	"out_of_memory", "gpu_out_of_memory", "gpu_unsupported", "gpu_missing", "missing_dependency", "validation_failed", "bad_bundle",
	"nothing_to_train", "disk_full", "python_too_old", "no_gpu_free",
}

func (w *work) workersWords(e api.Event) *api.Error {
	code := e.Code
	if !slices.Contains(workerCodes, code) {
		code = "worker_failed"
	}
	message := cmp.Or(e.Message, fmt.Sprintf("Trainer '%s' failed and did not say why", w.job.Spec.Trainer))
	return api.Unavailablef(code, "%s", message).WithHint("%s", e.InstallHint)
}

// predictions finds the file that the result names, or says what is wrong with it.
func (w *work) predictions(result api.Event, f *api.Finish) string {
	name := result.PredictionsFile
	if name == "" {
		blame(f, api.Unavailablef("worker_failed", "The worker reported a result and no predictions").
			WithHint("the trainer must write predictions.jsonl; stdout.log and stderr.log have what it printed"))
		return ""
	}
	// Through a root, so that neither .. nor a link of the worker's leads to any other file.
	root, err := os.OpenRoot(w.o.Artifacts)
	if err == nil {
		var info os.FileInfo
		info, err = root.Stat(filepath.FromSlash(name))
		if err == nil && !info.Mode().IsRegular() {
			err = errors.New("it is not a file")
		}
		err = errors.Join(err, root.Close())
	}
	if err != nil {
		blame(f, api.Unavailablef("worker_failed", "The worker reported a result, but its predictions file %s cannot be read: %v", name, err).
			WithHint("stdout.log and stderr.log have what it printed"))
		return ""
	}
	return filepath.Join(w.o.Artifacts, filepath.FromSlash(name))
}

// unexplained is the end of a worker that neither brought a result nor said what was wrong.
func (w *work) unexplained(exit Exit, stderr []string) *api.Error {
	if c, line, ok := causeIn(stderr); ok {
		message := c.message
		if c.code == "missing_dependency" {
			message = fmt.Sprintf("Trainer '%s' could not be imported by %s", w.job.Spec.Trainer, w.o.Python)
		}
		return api.Unavailablef(c.code, "%s: %s", message, line).WithHint("%s", c.hint)
	}
	switch {
	case exit.Signal == "KILL" || exit.Code != nil && *exit.Code == 137:
		return killed("The worker was killed (SIGKILL) from outside of this program")
	case exit.Signal == "TERM" || exit.Signal == "INT" || exit.Signal == "HUP" || exit.Signal == "QUIT":
		return killed(fmt.Sprintf("The worker was ended from outside of this program (SIG%s)", exit.Signal))
	case exit.Signal != "":
		return api.Unavailablef("worker_failed", "The worker crashed (SIG%s)", exit.Signal).
			WithHint("a crash in compiled code: stderr.log may name it; reinstalling the trainer's packages often helps")
	case exit.Code != nil && *exit.Code == 0:
		return api.Unavailablef("worker_failed", "The worker ended without a result").
			WithHint("the trainer must end with a result; stdout.log and stderr.log have what it printed")
	}
	message := "The worker failed"
	if exit.Code != nil {
		message = fmt.Sprintf("The worker failed with exit code %d", *exit.Code)
	}
	if n := len(stderr); n > 0 {
		message += ": " + cut(stderr[n-1], 300)
	}
	return api.Unavailablef("worker_failed", "%s", message).WithHint("stderr.log has the details")
}
