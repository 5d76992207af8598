package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"potato/api"
)

// SlurmPoll is how often a job directory on shared storage is looked at.
const SlurmPoll = 200 * time.Millisecond

// SbatchOptions say how workers are submitted. Config and Dir are needed, the rest has defaults.
type SbatchOptions struct {
	Config SlurmConfig
	Dir    string // a folder that all agents of this account and host share, e.g. remote_dir; the queue's answers lie there
	Log    *slog.Logger

	LateFiles      time.Duration // how long the files of a job that has ended may be late on network storage; default 180 s
	EndGrace       time.Duration // the same when the scheduler ended it, and how long it may take to requeue a job; default 10 s
	LeaseSlack     time.Duration // added to the lease that a compute node watches over network storage; default 60 s
	CommandTimeout time.Duration // of one call of the scheduler; default 60 s
	Quick          time.Duration // least time between two looks at the queue while something is waited for; default 1 s
	HeldLooks      int           // so many looks in a row a job may be held; default 30
	NeverLooks     int           // and be one that never starts as it was asked for; default 6
}

// Sbatch launches workers as SLURM jobs, from a machine where sbatch works. The job directory is on storage that the
// compute nodes share. A handle has no pid: the scheduler's id of the job is in it as soon as it is known, and until then
// the job is found by its name. Close it when it is not needed any more; the jobs go on.
type Sbatch struct {
	o     SbatchOptions
	cmd   slurmCommands
	queue *squeue
	log   *slog.Logger

	ctx    context.Context //nolint:containedctx // of the looks at the queue, which outlive the call that began them
	cancel context.CancelFunc
	looks  sync.WaitGroup

	mu   sync.Mutex
	jobs map[string]*slurmJob // by job directory
}

var _ Launcher = (*Sbatch)(nil)

// NewSbatch returns a launcher.
func NewSbatch(o SbatchOptions) *Sbatch {
	o.LateFiles = cmp.Or(o.LateFiles, 180*time.Second)
	o.EndGrace = cmp.Or(o.EndGrace, 10*time.Second)
	o.LeaseSlack = cmp.Or(o.LeaseSlack, 60*time.Second)
	o.CommandTimeout = cmp.Or(o.CommandTimeout, 60*time.Second)
	o.Quick = cmp.Or(o.Quick, time.Second)
	o.HeldLooks = cmp.Or(o.HeldLooks, 30)
	o.NeverLooks = cmp.Or(o.NeverLooks, 6)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	s := &Sbatch{o: o, cmd: newSlurmCommands(o.Config.Env, o.CommandTimeout), log: o.Log, jobs: map[string]*slurmJob{}}
	s.queue = newSqueue(filepath.Join(o.Dir, "slurm"), s.cmd, o.Config.pollInterval(), o.Quick)
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Ready says what the scheduler's commands are lacking on this machine (Q1).
func (s *Sbatch) Ready() error {
	for _, name := range []string{"sbatch", "squeue", "scancel"} {
		if _, err := s.cmd.find(name); err != nil {
			return slurmMissing(name).WithCause(err)
		}
	}
	return nil
}

// Close ends the looks at the queue and waits for them.
func (s *Sbatch) Close() {
	s.cancel()
	s.looks.Wait()
}

// Launch implements Launcher: it writes job.sh and submits it. An sbatch that gives no clear answer is no failure: State
// looks for the job by its name, and says StateUnstarted once it is sure that there is none.
func (s *Sbatch) Launch(ctx context.Context, l Launch) (api.Handle, error) {
	h := api.Handle{Backend: l.Backend, Dir: l.Dir, Host: hostname(), BootID: bootID(), Marker: rand.Text()}
	if err := cmp.Or(s.o.Config.Check(), s.Ready()); err != nil {
		return h, err
	}
	if err := s.writeJob(l, h.Marker); err != nil {
		return h, err
	}
	if err := l.Save(h); err != nil {
		return h, err
	}
	j := s.track(h)
	// Not bound to ctx: an sbatch that is cut off may have landed or not.
	job, err := s.submit(context.WithoutCancel(ctx), l)
	var unclear unclearError
	switch {
	case errors.As(err, &unclear):
		j.unclear(err)
		return h, nil
	case err != nil:
		return h, err
	}
	h.SlurmJob, h.SlurmCluster = job.id, job.cluster
	j.submitted(job)
	return h, l.Save(h)
}

// isSlurm reports whether the worker of a job directory was submitted to SLURM.
func isSlurm(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, submitFile))
	return err == nil
}

// track begins to look after a job, from nothing.
func (s *Sbatch) track(h api.Handle) *slurmJob {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := newSlurmJob(s, h)
	s.jobs[h.Dir] = j
	return j
}

func (s *Sbatch) job(h api.Handle) *slurmJob {
	s.mu.Lock()
	j := s.jobs[h.Dir]
	s.mu.Unlock()
	if j == nil || j.marker != h.Marker {
		j = s.track(h)
	}
	return j
}

// State implements Launcher. What it says is what the files of the job directory show now and what the scheduler said
// last; the scheduler is asked meanwhile.
func (s *Sbatch) State(_ context.Context, h api.Handle) (State, error) {
	j := s.job(h)
	j.mu.Lock()
	defer j.mu.Unlock()
	// Listed first, which makes network storage look for what is new.
	if _, err := os.ReadDir(h.Dir); errors.Is(err, fs.ErrNotExist) {
		return State{Phase: StateLost}, nil
	} else if err != nil {
		return State{}, err
	}
	j.readFiles()
	if !j.over() && !j.looking && time.Now().After(j.nextLook) && s.ctx.Err() == nil {
		j.looking = true
		s.looks.Go(func() { j.look(s.ctx) })
	}
	return j.state(), nil
}

// Signal implements Launcher (Q7).
func (s *Sbatch) Signal(ctx context.Context, h api.Handle, sig Signal) error {
	j := s.job(h)
	j.mu.Lock()
	j.readFiles()
	if _, ended := j.exitOfThis(); ended && sig == SignalTerm {
		j.mu.Unlock()
		return nil
	}
	if j.id == "" {
		// Whatever lands from now on ends itself. Somebody may be faster.
		_ = os.Symlink(claimCancelled, filepath.Join(h.Dir, claimFile))
		j.readFiles()
	}
	again := sig == SignalKill && time.Since(j.killed) < s.o.Config.pollInterval() && !j.killed.IsZero()
	if j.stopping.IsZero() {
		j.stopping = time.Now()
	}
	id, cluster, polite := j.id, j.cluster, sig == SignalTerm && j.running()
	j.mu.Unlock()
	if again {
		return nil
	}
	ids, err := s.idsOf(ctx, j, id)
	for _, id := range ids {
		if polite {
			err = errors.Join(err, s.terminate(ctx, cluster, id))
		} else {
			err = errors.Join(err, s.scancel(ctx, cluster, id))
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil && sig == SignalKill {
		j.killed = time.Now()
	}
	j.nextLook = time.Time{}
	return err
}

// idsOf are the jobs of this run: the one we know, and others of its name that an sbatch that landed twice left.
func (s *Sbatch) idsOf(ctx context.Context, j *slurmJob, id string) (ids []string, err error) {
	if id != "" {
		ids = append(ids, id)
	}
	a := s.queue.last(j.askCluster()) // a cancel of a job that is known does not wait for squeue
	if id == "" {
		began := time.Now()
		if a = s.queue.ask(ctx, j.askCluster(), began); a.Answered.Before(began) {
			return nil, api.Unavailablef("killed", "the scheduler does not answer whether there is a job of this run: %s", a.Error)
		}
	}
	for _, r := range j.named(a) {
		if r.ID != id && !isOverState(r.State) {
			ids = append(ids, r.ID)
		}
	}
	return ids, nil
}

// terminate tells every process of a running job to end.
func (s *Sbatch) terminate(ctx context.Context, cluster, id string) error {
	a, err := s.cmd.runOn(ctx, cluster, "scancel", "--full", "--signal=TERM", id)
	if err == nil && a.code != 0 && unknownOption(a.stderr) {
		// job.sh passes it on to its shim.
		a, err = s.cmd.runOn(ctx, cluster, "scancel", "--batch", "--signal=TERM", id)
	}
	return scancelled(id, a, err)
}

func (s *Sbatch) scancel(ctx context.Context, cluster, id string) error {
	a, err := s.cmd.runOn(ctx, cluster, "scancel", id)
	return scancelled(id, a, err)
}

func scancelled(id string, a slurmAnswer, err error) error {
	switch {
	case err != nil:
		return err
	case a.code != 0 && !containsAny(a.stderr, "Invalid job id", "already completing or completed"):
		return api.Unavailablef("killed", "SLURM job %s could not be cancelled: %s", id, words(a))
	}
	return nil
}
