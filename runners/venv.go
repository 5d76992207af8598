package runners

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"potato/agent"
	"potato/api"
)

// venv is the environment of local runs: made once from the interpreter and the listed packages, shared by all runs, and
// made anew when either changes. A file says that it is whole; without it, whatever is there was cut off.
type venv struct {
	dir      string
	packages []string
}

const venvReady = ".potato-ready"

// venv is nil when no packages are listed.
func (p *Python) venv() *venv {
	packages := p.config.ModelTraining.Packages
	if len(packages) == 0 {
		return nil
	}
	// The real path has the interpreter's version in its name, as a rule: after an upgrade the environment is made anew.
	real := p.base
	if path, err := exec.LookPath(p.base); err == nil {
		real = path
	}
	if path, err := filepath.EvalSymlinks(real); err == nil {
		real += "\x00" + path
	}
	sum := sha256.Sum256([]byte(real + "\x00" + strings.Join(packages, "\x00")))
	return &venv{dir: filepath.Join(p.dir, "venv-"+hex.EncodeToString(sum[:8])), packages: packages}
}

func (v *venv) python() string { return filepath.Join(v.dir, "bin", "python") }

func (v *venv) ready() bool {
	_, err := os.Stat(filepath.Join(v.dir, venvReady))
	return err == nil
}

// make makes the environment unless it is there. A lock keeps other processes of the study from making it too.
func (v *venv) make(ctx context.Context, base string, env []string, say func(step string), line func(string)) error {
	if v.ready() {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(v.dir), 0o700); err != nil {
		return err
	}
	lock, err := lockFile(ctx, v.dir+".lock", func() { say("waiting for another run to install packages") })
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // nothing is written to it
	if v.ready() {
		return nil
	}
	say("making the Python environment")
	if err := os.RemoveAll(v.dir); err != nil {
		return err
	}
	if err := v.run(ctx, env, lock, line, base, "-m", "venv", "--system-site-packages", v.dir); err != nil {
		return v.failed(ctx, err, "start_failed", base+" could not make an environment for `packages`",
			"install what it names (on Debian and Ubuntu: python3-venv), or remove `packages`")
	}
	if err := v.run(ctx, env, lock, line, base, "-c", parentPaths, v.python()); err != nil {
		return v.failed(ctx, err, "start_failed", "the environment for `packages` cannot be used", "look at agent.log")
	}
	say("installing " + strings.Join(v.packages, ", "))
	pip := append([]string{v.python(), "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"}, v.packages...)
	if err := v.run(ctx, pipEnv(env), lock, line, pip...); err != nil {
		return v.failed(ctx, err, "missing_dependency", "pip could not install "+strings.Join(v.packages, ", "),
			"mend `packages`, or see why this machine cannot reach the package index; agent.log has what pip said")
	}
	return agent.WriteFile(filepath.Join(v.dir, venvReady), nil, true)
}

// parentPaths makes the packages of an interpreter that is itself an environment visible in the one made of it:
// --system-site-packages shows those of the system alone (H2).
const parentPaths = `
import os, subprocess, sys, sysconfig
if sys.prefix != sys.base_prefix:
    ask = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    inner = subprocess.check_output([sys.argv[1], "-c", ask]).decode().strip()
    paths = sysconfig.get_paths()
    with open(os.path.join(inner, "_potato_parent.pth"), "w") as f:
        f.write("\n".join(dict.fromkeys([paths["purelib"], paths["platlib"]])) + "\n")
`

func (v *venv) failed(ctx context.Context, err error, code, what, hint string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var said *saidError
	if errors.As(err, &said) && said.last != "" {
		what += ": " + said.last
	}
	return api.Unavailablef(code, "%s", what).WithHint("%s", hint).WithCause(err)
}

// saidError is the failure of a program with the last thing it said.
type saidError struct {
	last string
	err  error
}

func (e *saidError) Error() string { return fmt.Sprintf("%v: %s", e.err, e.last) }
func (e *saidError) Unwrap() error { return e.err }

// run runs a program with all that it starts, hands on its lines, and ends all of it when ctx does. Should this server be
// killed, the program is ended by the kernel, or holds the lock as long as it lives: two never write the environment.
func (v *venv) run(ctx context.Context, env []string, lock *os.File, line func(string), argv ...string) error {
	runtime.LockOSThread() // what the kernel watches is the thread that starts the program
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = env, os.TempDir() // never a study's folder: Python would import from it
	cmd.SysProcAttr, cmd.ExtraFiles = childAttr(), []*os.File{lock}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, in
	last, read := "", make(chan struct{})
	go func() {
		defer close(read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if text := strings.TrimSpace(lines.Text()); text != "" {
				last = text
				line(text)
			}
		}
		_, _ = io.Copy(io.Discard, out) // a line too long for the scanner must not stop the program
	}()
	err := cmd.Run()
	_ = in.Close()
	<-read
	if err != nil {
		return &saidError{last, err}
	}
	return nil
}

// pipEnv adds pip's own settings, which may hold a password for the index and so are nothing for workers.
func pipEnv(env []string) []string {
	env = append([]string{}, env...)
	for _, kv := range os.Environ() {
		if strings.HasPrefix(kv, "PIP_") {
			env = append(env, kv)
		}
	}
	return env
}

// lockFile waits for the lock on a file, which ends with the last process that has it open. waiting is called once when it
// is not free.
func lockFile(ctx context.Context, path string, waiting func()) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	for told := false; ; told = true {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if !told {
			waiting()
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), f.Close())
		case <-time.After(200 * time.Millisecond):
		}
	}
}
