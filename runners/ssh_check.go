package runners

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners/agents"
	"potato/runners/hosts"
)

// MaxSkew is how far a machine's clock may be off before somebody is told.
const MaxSkew = time.Minute

// checkTime bounds a check, whatever the host does (H5). Closing, reporting and printing have the rest of the 20 s.
const checkTime = 18 * time.Second

// Check implements Runner: interpreter, GPUs, what trainers lack, room and rights (H5).
func (s *SSH) Check(ctx context.Context, o CheckOptions) api.CheckReport {
	b, _ := s.o.Config.ModelTraining.Backends.ByName(o.Backend)
	r := &report{api.CheckReport{
		Backend: o.Backend, Type: b.Type, OK: true, Items: []api.CheckItem{}, GPUs: []api.GPU{}, MissingPackages: []api.MissingPackages{},
	}}
	limit := checkTime
	if b.Type == api.BackendSlurm && o.Probe {
		limit += trialTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	device, f, err := s.look(ctx, r, b, o)
	if err != nil {
		text, hint := asText(err)
		r.add(api.CheckFail, "ssh", hint, "%s", text)
		r.Summary = "no run can start there: " + text
		return r.CheckReport
	}
	r.Summary = fmt.Sprintf("%s (%s), %s", b.Host, f.Host, device)
	if !r.OK {
		r.Summary += "; no run can start: " + firstFailure(r.Items)
	}
	return r.CheckReport
}

// look goes to the host, asks it, and judges its answers.
func (s *SSH) look(long context.Context, r *report, b project.Backend, o CheckOptions) (device string, f hostFacts, err error) {
	ctx, cancel := context.WithTimeout(long, checkTime)
	defer cancel()
	options := s.o.Hosts
	options.ConnectTimeout = min(checkTime/2, orDuration(options.ConnectTimeout, checkTime/2))
	began := time.Now()
	c, err := hosts.Dial(ctx, targetOf(b), options)
	if err != nil {
		return "", f, s.late(ctx, b, err)
	}
	// A host that has stalled takes no goodbye either.
	stop := context.AfterFunc(long, func() { _ = c.Close() })
	defer func() {
		if stop() {
			_ = c.Close()
		}
	}()
	took := time.Since(began)
	began = time.Now()
	if _, err := c.Run(ctx, hosts.Script{Text: ":"}); err != nil {
		return "", f, s.late(ctx, b, err)
	}
	r.add(api.CheckOK, "ssh", "", "logged in as %s (%s) in %s; a command takes %s", c.Login(), c.Transport(), short(took), short(time.Since(began)))
	deadline, _ := ctx.Deadline()
	if f, err = s.probe(ctx, c, b, time.Until(deadline)-time.Second); err != nil {
		return "", f, s.late(ctx, b, err)
	}
	if b.Type == api.BackendSlurm {
		device, err = s.judgeSlurm(ctx, long, c, r, b, f, o)
		return device, f, s.late(ctx, b, err)
	}
	return s.judge(r, b, f, o), f, nil
}

// late says of a host that a check ran out of time on that it is the host that is slow.
func (s *SSH) late(ctx context.Context, b project.Backend, err error) error {
	if err == nil || ctx.Err() == nil || api.AsError(err).Kind != api.KindInternal && !api.HasCode(err, "ssh_unreachable") {
		return err
	}
	return api.Unavailablef("ssh_unreachable", "%s lets us in and then does not answer within %s", b.Host, checkTime).
		WithHint("log in by hand and see what its login files wait for").WithCause(err)
}

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

func orDuration(a, b time.Duration) time.Duration {
	if a > 0 {
		return a
	}
	return b
}

// judge turns facts into findings and returns the device that a run would get.
func (s *SSH) judge(r *report, b project.Backend, f hostFacts, o CheckOptions) (device string) {
	s.judgePlatform(r, f)
	if err := f.pythonError(b); err != nil {
		text, hint := asText(err)
		r.add(api.CheckFail, "python", hint, "%s", text)
	} else {
		r.Python = f.Said.Python
		r.add(api.CheckOK, "python", "", "Python %s (%s)", f.Said.Python, f.Python)
		willHave(f.Said.Trainers, b.Packages)
		judgeTrainers(r, b, f.Said.Trainers, o.Trainer)
	}
	device = judgeGPUs(r, b, f)
	judgeDisk(r, b, f)
	s.judgeClock(r, f)
	return device
}

func (s *SSH) judgePlatform(r *report, f hostFacts) {
	p := agents.PlatformOf(f.OS, f.Arch)
	if err := s.hasAgent(p); err != nil {
		text, hint := asText(err)
		r.add(api.CheckFail, "platform", hint, "%s", text)
		return
	}
	state := "the agent and the trainers are copied by the first run"
	if f.HasCode {
		state = "the agent and the trainers are there"
	}
	r.add(api.CheckOK, "code", "", "%s, %s", p, state)
}

// judgeTrainers fails when the one asked for cannot run, or none can.
func judgeTrainers(r *report, b project.Backend, all []api.Trainer, wanted string) {
	can, known := 0, false
	for _, t := range all {
		known = known || t.Name == wanted
		switch {
		case t.LocalOnly:
			if t.Name == wanted {
				r.add(api.CheckFail, "trainer", "train on local", "Trainer '%s' runs on the server only", t.Name)
			}
			continue
		case t.Available:
			can++
			r.add(api.CheckOK, "trainer", "", "%s can train there", t.Name)
			continue
		}
		level, hint := api.CheckWarn, t.InstallHint
		if t.Name == wanted {
			level = api.CheckFail
		}
		if len(t.MissingPackages) > 0 {
			r.MissingPackages = append(r.MissingPackages, api.MissingPackages{Trainer: t.Name, Packages: t.MissingPackages})
			hint = packagesHint(b, strings.Join(t.MissingPackages, ", "))
		}
		r.add(level, "trainer", hint, "Trainer '%s' could not be imported: %s", t.Name, api.Printable(t.UnavailableReason))
	}
	switch {
	case wanted != "" && !known:
		r.add(api.CheckFail, "trainer", "listTrainers names those that are there", "there is no trainer '%s'", wanted)
	case wanted == "" && can == 0:
		r.add(api.CheckFail, "trainer", packagesHint(b, "the packages of one of them"), "no trainer can run with %s on %s", b.Python, b.Host)
	}
}

// packagesHint says how a backend comes by packages. Nothing is installed on compute nodes, which often reach no index.
func packagesHint(b project.Backend, missing string) string {
	if b.Type == api.BackendSlurm {
		return fmt.Sprintf("point `job_python` at an interpreter that has %s", missing)
	}
	return fmt.Sprintf("point `python` at an interpreter that has %s, or list them under `packages`", missing)
}

func judgeGPUs(r *report, b project.Backend, f hostFacts) (device string) {
	wanted := string(b.GPUs)
	gpus, _ := f.SMI.gpus(b.Host) // what is wrong with it, the choice says
	f.Torch.mark(gpus)
	got, err := chooseGPUs(b.Host, wanted, b.MinFreeGPUMB, f.SMI, f.Torch, nil)
	driver := ""
	for _, g := range gpus {
		chosen := slices.ContainsFunc(got.GPUs, func(c hostGPU) bool { return c.Index == g.Index })
		r.GPUs = append(r.GPUs, api.GPU{
			Index: g.Index, Name: g.Name, MemoryFreeMB: g.FreeMB, MemoryTotalMB: g.TotalMB, Utilization: g.Used, Supported: !g.NoKernels, Chosen: chosen,
		})
		level, text := api.CheckOK, fmt.Sprintf("GPU %d: %s, %s of %s MB free, %s %% busy", g.Index, g.Name, known(g.FreeMB), known(g.TotalMB), known(g.Used))
		if g.NoKernels {
			level, text = api.CheckWarn, text+" (torch there has no kernels for it)"
		}
		r.add(level, "gpu", "", "%s", text)
		driver = g.Driver
	}
	if driver != "" {
		r.add(api.CheckOK, "driver", "", "NVIDIA driver %s", driver)
	}
	if f.Torch.Error != "" {
		r.add(api.CheckWarn, "torch", "look at the installation of torch there", "torch there cannot be used: %s", api.Printable(f.Torch.Error))
	}
	if !f.told["torch"] && f.told["python"] && f.pyCode == 0 {
		r.add(api.CheckWarn, "torch", "", "torch there was not imported in time, so nobody knows whether it has kernels for the GPUs")
	}
	if err != nil {
		text, hint := asText(err)
		r.add(api.CheckFail, "gpu", hint, "%s", text)
		return "no GPU that a run would get"
	}
	for _, w := range got.Warnings {
		r.add(api.CheckWarn, "gpu", "", "%s", w)
	}
	if f.SMI.Silent && wanted == "none" {
		r.add(api.CheckWarn, "gpu", "", "nvidia-smi there is not answering; runs train on the CPU and do not mind")
	}
	r.add(api.CheckOK, "device", "", "a run would get %s", got.text())
	return got.text()
}

func known(n *int64) string {
	if n == nil {
		return "?"
	}
	return fmt.Sprint(*n)
}

func judgeDisk(r *report, b project.Backend, f hostFacts) {
	fail := func(hint, format string, args ...any) { r.add(api.CheckFail, "disk", hint, format, args...) }
	const elsewhere = "set `remote_dir` to a folder that the account may write"
	switch {
	case !f.told["disk"]:
		fail("look at the file system there; `remote_dir` may be on a server that is gone", "the file system of %s on %s is not answering", f.Dir, b.Host)
		return
	case f.NotDir:
		fail(elsewhere, "%s on %s is no folder", f.Dir, b.Host)
		return
	case !f.Writable:
		fail(elsewhere, "%s on %s cannot be written", f.Dir, b.Host)
		return
	case f.Inodes != nil && *f.Inodes < 500 && *f.Inodes > 0:
		fail("remove files there, or set `remote_dir` to another file system", "only %d more files can be made at %s", *f.Inodes, f.Dir)
	case f.FreeMB == nil:
		r.add(api.CheckWarn, "disk", "", "%s does not say how much room is at %s", b.Host, f.Dir)
	case *f.FreeMB < minFreeMB:
		fail("free some space there, or set `remote_dir` to another file system", "only %d MB are free at %s", *f.FreeMB, f.Dir)
	default:
		r.add(api.CheckOK, "disk", "", "%d MB are free at %s", *f.FreeMB, f.Dir)
	}
	if f.Exec != nil && !*f.Exec {
		fail(hints["host_noexec"], "programs may not run from %s on %s (it is mounted noexec)", f.Dir, b.Host)
	}
}

func (s *SSH) judgeClock(r *report, f hostFacts) {
	if f.Time == 0 {
		return
	}
	off := time.Since(time.Unix(f.Time, 0)).Round(time.Second)
	if off > MaxSkew || off < -MaxSkew {
		r.add(api.CheckWarn, "clock", "set the clocks by NTP; times in logs are the host's own", "the clock there is off by %s", (-off).String())
		return
	}
	r.add(api.CheckOK, "clock", "", "the clocks agree")
}
