package trainers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"potato/api"
)

const (
	describeTime = 15 * time.Second
	answerMost   = 8 << 20 // a study's parameters are not larger than that
	complainMost = 64 << 10
)

// DescribeOptions say which interpreter is asked, and about what.
type DescribeOptions struct {
	Python      string        // the interpreter: a path or a name on PATH; default python3
	Dir         string        // where the package is written, see Materialise
	TrainersDir string        // the study's own trainers; empty: none
	Device      string        // auto, cpu, cuda, cuda:1, mps: say what such a run gets, which may import torch; empty: do not
	Env         []string      // whole environment of the interpreter, the same as a run's; nil: PATH and HOME of this process
	Timeout     time.Duration // default 15 s
}

// Describe asks an interpreter for its version, its trainers and its device. No trainer's package is imported and no
// file of the study is run. A failure is an *api.Error whose code says what the interpreter lacks.
func Describe(ctx context.Context, o DescribeOptions) (api.Environment, error) {
	var said api.Environment
	if o.Env == nil {
		o.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}
	}
	python, err := FindPython(o.Python, o.Env)
	if err != nil {
		return said, err
	}
	path, err := Materialise(o.Dir)
	if err != nil {
		return said, err
	}
	args := []string{path, "--describe"}
	if o.TrainersDir != "" {
		args = append(args, "--trainers-dir", o.TrainersDir)
	}
	if o.Device != "" {
		args = append(args, "--devices", o.Device)
	}
	answer, err := ask(ctx, o, python, args)
	if err != nil {
		return said, err
	}
	if err := json.Unmarshal(answer, &said); err != nil {
		return said, notPython(python, "its answer is not JSON").WithCause(err)
	}
	return said, nil
}

func ask(ctx context.Context, o DescribeOptions, python string, args []string) ([]byte, error) {
	limit := o.Timeout
	if limit <= 0 {
		limit = describeTime
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlow)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, args...)
	cmd.Env = o.Env
	cmd.Dir = os.TempDir()                                // never a study's folder: Python would import from it
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interpreter may be a script that starts another
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, complaint := &bounded{most: answerMost}, &bounded{most: complainMost}
	cmd.Stdout, cmd.Stderr = out, complaint
	err := cmd.Run()
	switch {
	case errors.Is(context.Cause(ctx), errSlow):
		return nil, api.Unavailablef("start_failed", "%s did not answer within %v", python, limit).
			WithHint("run `%s -c 0` on this machine and see what it waits for", python)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err == nil:
		return out.kept.Bytes(), nil
	}
	if refusal := tooOld(out.kept.Bytes()); refusal != nil {
		return nil, refusal
	}
	return nil, notPython(python, lastLine(complaint.kept.String(), err)).WithCause(fmt.Errorf("%w: %s", err, complaint.kept.String()))
}

var errSlow = errors.New("too slow")

// tooOld finds the one thing that the worker says under a Python that it cannot run on.
func tooOld(answer []byte) error {
	var event api.Event
	if json.Unmarshal(answer, &event) != nil || event.Code != "python_too_old" {
		return nil
	}
	return api.Unavailablef(event.Code, "%s", event.Message).WithHint("set `model_training.python` to a newer interpreter")
}

func notPython(python, why string) *api.Error {
	return api.Unavailablef("start_failed", "%s could not run the worker: %s", python, why).
		WithHint("set `model_training.python` to a Python interpreter, 3.8 or newer, that works")
}

func lastLine(text string, err error) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}

// bounded keeps the first bytes that are written to it; an interpreter gone wild must not fill the memory. The buffer is
// not embedded: io.Copy would find its ReadFrom and go past Write.
type bounded struct {
	kept bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), b.most-b.kept.Len())])
	return len(p), nil
}
