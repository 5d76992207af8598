package agent

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"potato/api"
)

// HostedJob is what a server that has come to this machine tells the agent it starts here: one line of JSON on standard
// input, so that the token shows nowhere.
type HostedJob struct {
	Token       string            `json:"token"`
	Socket      string            `json:"socket"` // the server's end; empty: standard input and output are
	Dir         string            `json:"dir"`    // the job directory
	Backend     string            `json:"backend"`
	Python      string            `json:"python"`
	Worker      string            `json:"worker"`       // worker.py
	TrainersDir string            `json:"trainers_dir"` // the study's own trainers here; empty: none
	ArtifactURI string            `json:"artifact_uri"`
	Env         map[string]string `json:"env"` // of the worker, over what the login shell sets
	NumThreads  int               `json:"num_threads"`
	Device      string            `json:"device"`
	GPUs        []string          `json:"gpus"`            // UUIDs: those to use when Pinned, else those that qualify, the best first
	Pinned      bool              `json:"pinned"`          // all of them, whoever else uses them
	LossS       float64           `json:"loss_s"`          // silence of the server after which the run is ended here (H11)
	Keep        bool              `json:"keep"`            // the job directory stays
	Slurm       *SlurmConfig      `json:"slurm,omitempty"` // the worker is submitted to SLURM from here; nil: it is a process of this machine
}

// Hosted is the body of the hidden command "hosted": one job of a server that has logged in here. Its result is the exit
// status. The end of the session does not end it: the server comes back, or the job is ended when it does not.
func Hosted(stdin io.Reader, stdout io.Writer) int {
	signal.Ignore(syscall.SIGHUP, syscall.SIGPIPE)
	syscall.Umask(0o077)
	in := bufio.NewReader(stdin)
	var h HostedJob
	if !readLine(in, &h) || h.Token == "" || h.Dir == "" {
		return 1
	}
	file, err := os.OpenFile(filepath.Join(h.Dir, agentLog), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		_, _ = fmt.Fprintln(stdout, err) // the session may be gone
		return 1
	}
	defer file.Close() //nolint:errcheck // each line stands for itself
	log := slog.New(slog.NewTextHandler(file, nil))
	if err := h.run(context.Background(), in, stdout, log); err != nil {
		e := api.AsError(err)
		text := e.Message
		if e.Kind == api.KindInternal {
			text = err.Error()
		}
		log.Error("the agent leaves", "code", e.Code, "err", text, "hint", e.Hint)
		if h.Socket != "" { // else the protocol goes there
			_, _ = fmt.Fprintf(stdout, "The agent leaves: %s\n", text) // the session may be gone
		}
		return 1
	}
	return 0
}

const agentLog = "agent.log"

func (h HostedJob) run(ctx context.Context, in io.Reader, out io.Writer, log *slog.Logger) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	log.Info("the agent is here", "host", hostname(), "pid", os.Getpid(), "dir", h.Dir)
	transport, err := h.transport(in, out)
	if err != nil {
		return err
	}
	if h.Socket != "" {
		defer os.RemoveAll(filepath.Dir(h.Socket)) //nolint:errcheck // the server removes it too
	}
	client := &api.Client{BaseURL: "http://server", Token: h.Token, HTTP: &http.Client{Transport: transport}}
	job, err := h.claim(ctx, client, log)
	if err != nil {
		return err
	}
	if h.Slurm != nil {
		return h.submit(ctx, *job, self, client, log)
	}
	gpus, locks, err := h.takeGPUs()
	if err != nil {
		return errors.Join(err, h.fail(ctx, client, *job, err))
	}
	defer letGo(locks)
	h.adapt(job, gpus)
	log.Info("working on the run", "run", job.RunID, "python", h.Python, "gpus", strings.Join(gpus, ","))
	err = Work(ctx, *job, Options{
		Dir: h.Dir, Desk: client, Backend: h.Backend, Python: h.Python, PythonKey: "python", WorkerPath: h.Worker, ArtifactURI: h.ArtifactURI,
		Env: WorkerEnv(h.env(gpus)...), Shim: []string{self, "exec"}, ServerLossTimeout: seconds(h.LossS), LeaseTimeout: seconds(h.LossS), Log: log, TellLog: true, Hold: locks,
	})
	if api.HasCode(err, "server_unreachable") && !h.Keep {
		err = errors.Join(err, os.RemoveAll(h.Dir))
	}
	return err
}

// submit has the worker run as a SLURM job, on GPUs that the scheduler gives it.
func (h HostedJob) submit(ctx context.Context, job api.Job, self string, client *api.Client, log *slog.Logger) error {
	h.limit(&job)
	sbatch := NewSbatch(SbatchOptions{Config: *h.Slurm, Dir: filepath.Dir(filepath.Dir(h.Dir)), Log: log})
	defer sbatch.Close()
	log.Info("working on the run", "run", job.RunID, "python", cmp.Or(h.Slurm.JobPython, h.Python))
	err := Work(ctx, job, Options{
		Dir: h.Dir, Desk: client, Launcher: sbatch, Backend: h.Backend, Python: h.Python, PythonKey: "job_python", WorkerPath: h.Worker,
		ArtifactURI: h.ArtifactURI, Shim: []string{self, "exec"}, Detach: h.Slurm.Detach, Poll: SlurmPoll,
		ServerLossTimeout: seconds(h.LossS), LeaseTimeout: seconds(h.LossS), Log: log, TellLog: true,
	})
	if api.HasCode(err, "server_unreachable") && !h.Keep && !h.Slurm.Detach {
		err = errors.Join(err, os.RemoveAll(h.Dir))
	}
	return err
}

// claim asks for the one run that the token speaks for.
func (h HostedJob) claim(ctx context.Context, c *api.Client, log *slog.Logger) (*api.Job, error) {
	q := api.ClaimRequest{AgentID: "hosted-" + rand.Text(), ClaimID: rand.Text(), Host: cutTo(hostname(), 255), Version: "hosted", Backend: h.Backend}
	limit := time.Now().Add(cmp.Or(seconds(h.LossS), 120*time.Second))
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		job, err := c.Claim(ctx, q)
		switch {
		case err == nil && job != nil:
			return job, nil
		case err == nil:
			err = api.Gonef("run_over", "the server has no work for this agent any more")
			return nil, err
		case judge(err) != tryAgain || time.Now().After(limit):
			return nil, err
		}
		log.Warn("the server does not answer yet", "err", err)
		time.Sleep(pause)
	}
}

// adapt makes the server's job one of this machine.
func (h HostedJob) adapt(job *api.Job, gpus []string) {
	h.limit(job)
	if len(gpus) == 0 {
		job.Spec.Limits.Device = "cpu"
	}
}

// limit replaces what the server knows of itself by what holds here.
func (h HostedJob) limit(job *api.Job) {
	job.Spec.TrainersDir = nil
	if h.TrainersDir != "" {
		job.Spec.TrainersDir = &h.TrainersDir
	}
	job.Spec.Limits.NumThreads, job.Spec.Limits.MaxRAMMB = nil, nil
	if h.NumThreads > 0 {
		job.Spec.Limits.NumThreads = &h.NumThreads
	}
	job.Spec.Limits.Device = cmp.Or(h.Device, "auto")
}

// env is the worker's own: the backend's, and the GPUs that it may see.
func (h HostedJob) env(gpus []string) []string {
	env := []string{"CUDA_DEVICE_ORDER=PCI_BUS_ID", "CUDA_VISIBLE_DEVICES=" + strings.Join(gpus, ",")}
	for name, value := range h.Env {
		env = append(env, name+"="+value)
	}
	return env
}

// takeGPUs locks the GPUs of the run, so that two servers do not take the same one. The worker's shim holds the locks too: an
// agent that dies does not let them go.
func (h HostedJob) takeGPUs() (gpus []string, locks []*os.File, err error) {
	var before []string // of the agent that launched the worker
	taken := filepath.Join(h.Dir, gpusFile)
	launched := readJSON(taken, &before)
	for _, uuid := range h.GPUs {
		if launched && !contains(before, uuid) {
			continue
		}
		f, free := lockGPU(uuid)
		if f != nil {
			locks = append(locks, f)
		}
		if !free && !h.Pinned && !launched {
			continue
		}
		gpus = append(gpus, uuid)
		if !h.Pinned {
			break
		}
	}
	if launched {
		return before, locks, nil
	}
	if len(h.GPUs) > 0 && len(gpus) == 0 {
		return nil, nil, api.Unavailablef("no_gpu_free", "Every GPU with enough free memory was taken by another run at this moment").
			WithHint("wait, or pin one with `gpus: \"1\"`; the check lists the GPUs")
	}
	return gpus, locks, writeJSON(taken, gpus, false)
}

func letGo(locks []*os.File) {
	for _, f := range locks {
		_ = f.Close()
	}
}

const gpusFile = "gpus.json"

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// lockGPU takes the lock of a GPU, which all accounts of the machine share. A lock that cannot be had at all, on a machine
// where /tmp is each account's own, keeps nobody from training.
func lockGPU(uuid string) (f *os.File, free bool) {
	path := "/tmp/potato-" + filepath.Base(uuid) + ".lock"
	f, err := os.Open(path) // another account's cannot be opened to be made, in /tmp
	if errors.Is(err, os.ErrNotExist) {
		if f, err = os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644); err == nil {
			_ = f.Chmod(0o644)
		}
	}
	if err != nil {
		return nil, true
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		_ = f.Close()
		return nil, false
	}
	return f, true
}

// fail tells the server that the job ends before it began.
func (h HostedJob) fail(ctx context.Context, c *api.Client, job api.Job, err error) error {
	f := api.Finish{Host: hostname(), ArtifactURI: h.ArtifactURI}
	blame(&f, api.AsError(err))
	return c.Finish(ctx, job, f)
}

// StopHosted ends what runs in a job directory without its agent's help: the agent first, so that nobody starts anything
// anew, then the worker, politely and after the grace at once.
func StopHosted(ctx context.Context, dir string, grace time.Duration) error {
	var o owner
	if readJSON(filepath.Join(dir, ownerFile), &o) && o.Pid > 1 && o.Host == hostname() && o.BootID == bootID() {
		_ = syscall.Kill(o.Pid, syscall.SIGKILL)
	}
	var h api.Handle
	if !readJSON(filepath.Join(dir, handleFile), &h) || h.Marker == "" {
		return nil
	}
	var p Launcher = Process{}
	if isSlurm(dir) {
		s := NewSbatch(SbatchOptions{Dir: filepath.Dir(filepath.Dir(dir))})
		defer s.Close()
		p = s
	}
	if err := p.Signal(ctx, h, SignalTerm); err != nil {
		return err
	}
	for end := time.Now().Add(grace); time.Now().Before(end); time.Sleep(lookAgain) {
		if st, err := p.State(ctx, h); err == nil && st.Phase != StateRunning {
			return nil
		}
	}
	return p.Signal(ctx, h, SignalKill)
}

// Stop is the body of the hidden command "stop": it reads the job directory and the grace in seconds as one JSON line.
func Stop(stdin io.Reader) int {
	var q struct {
		Dir   string  `json:"dir"`
		Grace float64 `json:"grace_s"`
	}
	if line, err := bufio.NewReader(stdin).ReadBytes('\n'); err != nil || json.Unmarshal(line, &q) != nil || q.Dir == "" {
		return 1
	}
	if err := StopHosted(context.Background(), q.Dir, seconds(q.Grace)); err != nil {
		return 1
	}
	return 0
}
