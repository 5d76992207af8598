package runners

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"potato/api"
)

// minFreeMB is the free space below which a check fails: a bundle, predictions and a small model need about that.
const minFreeMB = 200

// report collects findings.
type report struct{ api.CheckReport }

func (r *report) add(level api.CheckLevel, topic, hint, format string, args ...any) {
	r.Items = append(r.Items, api.CheckItem{Level: level, Topic: topic, Text: fmt.Sprintf(format, args...), Hint: hint})
	r.OK = r.OK && level != api.CheckFail
}

// Check implements Runner: interpreter, device, what trainers lack, room on the disk.
func (l *Local) Check(ctx context.Context, o CheckOptions) api.CheckReport {
	r := &report{api.CheckReport{
		Backend: o.Backend, Type: api.BackendLocal, OK: true, Items: []api.CheckItem{}, GPUs: []api.GPU{}, MissingPackages: []api.MissingPackages{},
	}}
	env, err := l.o.Python.WithDevice(ctx)
	if err != nil {
		text, hint := asText(err)
		r.add(api.CheckFail, "python", hint, "%s", text)
		r.Summary = "no run can start here: " + text
		return r.CheckReport
	}
	r.Python = env.Python
	r.add(api.CheckOK, "python", "", "Python %s (%s)", env.Python, env.Executable)
	l.checkPackages(r)
	device := "CPU"
	if d := env.Device; d != nil {
		device = d.Text
		r.add(api.CheckOK, "device", "", "%s", d.Text)
		for _, w := range d.Warnings {
			r.add(api.CheckWarn, "device", "", "%s", w)
		}
		if d.GPUs != nil {
			r.GPUs = d.GPUs
		}
	}
	l.checkTrainers(r, env, o.Trainer)
	l.checkDisk(r)
	r.Summary = "this machine, " + device
	if !r.OK {
		r.Summary += "; no run can start: " + firstFailure(r.Items)
	}
	return r.CheckReport
}

func firstFailure(items []api.CheckItem) string {
	for _, i := range items {
		if i.Level == api.CheckFail {
			return i.Text
		}
	}
	return ""
}

func (l *Local) checkPackages(r *report) {
	v := l.o.Python.venv()
	switch {
	case v == nil:
	case v.ready():
		r.add(api.CheckOK, "packages", "", "%s are installed in %s", strings.Join(v.packages, ", "), v.dir)
	default:
		r.add(api.CheckOK, "packages", "", "%s will be installed by the first run", strings.Join(v.packages, ", "))
	}
}

// checkTrainers fails when the one asked for cannot run, or none can.
func (l *Local) checkTrainers(r *report, env api.Environment, wanted string) {
	can, known := 0, false
	for _, t := range env.Trainers {
		known = known || t.Name == wanted
		if t.Available {
			can++
			r.add(api.CheckOK, "trainer", "", "%s can train here", t.Name)
			continue
		}
		level := api.CheckWarn
		if t.Name == wanted {
			level = api.CheckFail
		}
		hint := t.InstallHint
		if len(t.MissingPackages) > 0 {
			r.MissingPackages = append(r.MissingPackages, api.MissingPackages{Trainer: t.Name, Packages: t.MissingPackages})
			hint = fmt.Sprintf("%s -m pip install %s, or list them under `model_training.packages`", env.Executable, strings.Join(t.MissingPackages, " "))
		}
		r.add(level, "trainer", hint, "Trainer '%s' could not be imported: %s", t.Name, t.UnavailableReason)
	}
	switch {
	case wanted != "" && !known:
		r.add(api.CheckFail, "trainer", "`potato training trainers` lists those that are there", "there is no trainer '%s'", wanted)
	case wanted == "" && can == 0:
		r.add(api.CheckFail, "trainer", "install the packages of one of them", "no trainer can run with %s", env.Executable)
	}
}

func (l *Local) checkDisk(r *report) {
	dir := l.o.Python.dir
	for ; ; dir = filepath.Dir(dir) { // the training folder may not be made yet
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			break
		}
	}
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		r.add(api.CheckWarn, "disk", "", "the disk of %s cannot be asked: %v", dir, err)
		return
	}
	free := int64(s.Bavail) * int64(s.Bsize) >> 20
	level, hint := api.CheckOK, ""
	if free < minFreeMB {
		level, hint = api.CheckFail, "free some space there, or move the runs with `model_training.training_dir`"
	}
	r.add(level, "disk", hint, "%d MB are free at %s", free, dir)
	if err := unix.Access(dir, unix.W_OK); err != nil {
		r.add(api.CheckFail, "disk", "give the server's account write access to it", "%s cannot be written", dir)
	}
}

// asText is the sentence of an error for a report.
func asText(err error) (text, hint string) {
	e := api.AsError(err)
	if e.Kind == api.KindInternal && !errors.Is(err, context.Canceled) {
		return fmt.Sprintf("the check failed: %v", err), ""
	}
	return e.Message, e.Hint
}
