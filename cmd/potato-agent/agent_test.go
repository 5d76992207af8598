package main_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
)

// The tutorial's session on the training machine: one run, the model stays, the agent leaves (G1, G3, G4).
func TestAgentTrainsOnce(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	id := m.add(agenttest.Good(3)...)
	p := m.start("--once")
	p.leaves(0, "the run is done")
	h := m.until(id, api.RunSuccess)
	if strings.Count(string(h.Predictions), "\n") != 3 || !strings.HasSuffix(h.Finish.ArtifactURI, ":"+filepath.Join(m.workdir(), "artifacts", string(id))) {
		t.Errorf("%q, %+v", h.Predictions, h.Finish)
	}
	for _, said := range []string{"backend=lab", "interpreter of the worker", "trainer name=sklearn-text", "taking a run"} {
		if !strings.Contains(p.out.String(), said) {
			t.Errorf("it did not say %q:\n%s", said, p.out)
		}
	}
	if strings.Contains(p.out.String(), "plain http") {
		t.Errorf("it warned of plain http to this very machine:\n%s", p.out)
	}
}

// T39: during a run no process of the machine has the token in its command line or its environment, the agent included,
// and the worker did not get it.
func TestAgentShowsNoToken(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	dump := filepath.Join(m.home, "env.json")
	id := m.add(agenttest.Step{"env", dump}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	p := m.start()
	m.step(id, "ready")
	processes, _ := filepath.Glob("/proc/[0-9]*") // a good pattern
	looked := map[string]bool{}
	for _, dir := range processes {
		for _, file := range []string{"cmdline", "environ"} {
			b, err := os.ReadFile(filepath.Join(dir, file))
			if err != nil {
				continue // it has ended, or is nobody's
			}
			if bytes.Contains(b, []byte(m.token)) {
				t.Errorf("the token is in %s/%s", dir, file)
			}
			if bytes.Contains(b, []byte("POTATO_MARKER="+m.handles()[0])) {
				looked[dir] = true
			}
		}
	}
	if len(looked) < 2 {
		t.Errorf("looked at %v; want the shim and the worker among them", looked)
	}
	var env map[string]string
	if b, err := os.ReadFile(dump); err != nil || json.Unmarshal(b, &env) != nil || env["HOME"] != m.home {
		t.Fatalf("the worker's environment: %s, %v", b, err)
	}
	for name, value := range env {
		if strings.Contains(name, "TOKEN") || strings.Contains(value, m.token) {
			t.Errorf("the worker got %s=%s", name, value)
		}
	}
	// The agent's own argv is what was typed.
	if b, err := os.ReadFile(filepath.Join("/proc", pidText(p), "cmdline")); err != nil || !bytes.Contains(b, []byte("--backend\x00lab")) {
		t.Errorf("cmdline %q, %v", b, err)
	}
	p.signal(syscall.SIGINT)
	p.leaves(0, "stopping")
}

func pidText(p *process) string { return strconv.Itoa(p.cmd.Process.Pid) }

// G8, T36: the agent is killed and comes back; the worker went on, and nothing is lost or comes twice.
func TestAgentIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	id := m.add(append([]agenttest.Step{{"status", "ready"}, {"metrics", 100, 0.02}}, agenttest.Good(3)...)...)
	p := m.start()
	m.step(id, "ready")
	p.signal(syscall.SIGKILL)
	<-p.done
	m.start("--once").leaves(0, "going on with a run")
	h := m.until(id, api.RunSuccess)
	next := 0.0
	for i, e := range h.Events {
		if e.Seq != int64(i+1) {
			t.Fatalf("event %d has number %d", i+1, e.Seq)
		}
		if e.Event == api.EventMetric {
			if *e.Value != next {
				t.Fatalf("metric %v came where %v was due", *e.Value, next)
			}
			next++
		}
	}
	if next != 100 || len(m.server.Claims()) != 1 || len(m.server.Faults()) > 0 {
		t.Errorf("%v metrics, %d claims, faults %v", next, len(m.server.Claims()), m.server.Faults())
	}
}

// T36: the agent is killed and nobody comes back: its worker ends itself, and no GPU is held for ever.
func TestAgentIsKilledForGood(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	id := m.add(agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	p := m.start("--lease", "1s")
	m.step(id, "ready")
	marker := m.handles()[0]
	if len(agenttest.Marked(marker)) == 0 {
		t.Fatal("the worker does not run")
	}
	p.signal(syscall.SIGKILL)
	<-p.done
	agenttest.Wait(t, "the worker's end", func() (bool, string) {
		left := agenttest.Marked(marker)
		return len(left) == 0, strings.Join(left, "; ")
	})
}

// One signal cancels the run and leaves; the exit is a clean one.
func TestAgentIsStopped(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		m := newMachine(t)
		id := m.add(agenttest.Step{"on_term", "event"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
		p := m.start()
		m.step(id, "ready")
		p.signal(s)
		p.leaves(0, "the run was cancelled")
		if h := m.server.Run(id); h.Status != api.RunCancelled || !strings.Contains(h.Finish.Error, "was stopped") {
			t.Errorf("%v: %s, %+v", s, h.Status, h.Finish)
		}
		if left := m.held(); len(left) > 0 {
			t.Errorf("%v: left %v", s, left)
		}
	}
}

// Two signals end everything at once.
func TestAgentIsStoppedTwice(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	id := m.add(agenttest.Step{"on_term", "ignore"}, agenttest.Step{"status", "ready"}, agenttest.Step{"sleep", 600})
	p := m.start()
	m.step(id, "ready")
	marker := m.handles()[0]
	p.signal(syscall.SIGTERM)
	p.says("once more ends everything at once")
	began := time.Now()
	p.signal(syscall.SIGTERM)
	p.leaves(130, "leaving at once")
	if took := time.Since(began); took > 4*time.Second { // the grace is 5 s
		t.Errorf("it took %v", took)
	}
	if left := agenttest.Marked(marker); len(left) > 0 {
		t.Errorf("still there: %v", left)
	}
}

// nohup: a hang-up that was ignored from the beginning stays so.
func TestAgentWithNohup(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	p := m.start()
	agenttest.Wait(t, "a first question", func() (bool, string) { return len(m.server.Claims()) > 0, "none" })
	p.signal(syscall.SIGHUP)
	p.leaves(0, "stopping")

	shell := exec.Command("/bin/sh", "-c", `trap "" HUP; exec "$0" "$@"`, program, "--server", m.url, "--backend", "lab", "--python", m.python)
	out := &lines{}
	shell.Env, shell.Stderr = m.env("POTATO_TRAINING_TOKEN="+m.token), out
	if err := shell.Start(); err != nil {
		t.Fatal(err)
	}
	claims := len(m.server.Claims())
	agenttest.Wait(t, "a question", func() (bool, string) { return len(m.server.Claims()) > claims, out.String() })
	if err := shell.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	id := m.add(agenttest.Good(1)...)
	m.until(id, api.RunSuccess)
	if err := shell.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := shell.Wait(); err != nil {
		t.Errorf("it left with %v:\n%s", err, out)
	}
}

// Tokens: from the environment, or from a file, which wins; refused when anybody can read it; and what the server says.
func TestAgentTokens(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	file := filepath.Join(m.home, "token")
	write := func(content string, mode os.FileMode) {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	base := []string{"--server", m.url, "--backend", "lab", "--python", m.python, "--once"}
	fromFile := append([]string{"--token-file", file}, base...)
	for name, c := range map[string]struct {
		env  []string
		args []string
		mode os.FileMode
		text string
		want string
	}{
		"none":               {nil, base, 0o600, "", "there is no token"},
		"a wrong one":        {[]string{"POTATO_TRAINING_TOKEN=wrong"}, base, 0o600, "", "this token is not known"},
		"no token at all":    {[]string{"POTATO_TRAINING_TOKEN=two words"}, base, 0o600, "", "POTATO_TRAINING_TOKEN holds no token"},
		"a very long one":    {[]string{"POTATO_TRAINING_TOKEN=" + strings.Repeat("x", 100_000)}, base, 0o600, "", "POTATO_TRAINING_TOKEN holds no token"},
		"the file wins":      {[]string{"POTATO_TRAINING_TOKEN=" + m.token}, fromFile, 0o600, "wrong", "this token is not known"},
		"readable by all":    {nil, fromFile, 0o644, m.token, "can be read by other users of this machine"},
		"readable by some":   {nil, fromFile, 0o640, m.token, "chmod 600"},
		"an empty file":      {nil, fromFile, 0o600, "\n", "holds no token"},
		"two lines":          {nil, fromFile, 0o600, "a\nb\n", "holds no token"},
		"a folder":           {nil, append([]string{"--token-file", m.home}, base...), 0o600, "", "is not a file"},
		"a file that is not": {nil, append([]string{"--token-file", file + "x"}, base...), 0o600, "", "no such file"},
	} {
		write(c.text, c.mode)
		if code, out := m.answers(m.env(c.env...), c.args...); code != 1 || !strings.Contains(out, c.want) {
			t.Errorf("%s: exit code %d, %q; want 1, %q", name, code, out, c.want)
		}
	}
	for _, mode := range []os.FileMode{0o600, 0o400} {
		write(m.token+"\n", mode)
		id := m.add(agenttest.Good(1)...)
		if code, out := m.answers(m.env("POTATO_TRAINING_TOKEN=wrong"), fromFile...); code != 0 {
			t.Errorf("mode %v: exit code %d, %q", mode, code, out)
		}
		m.until(id, api.RunSuccess)
	}
	p := m.start()
	p.says("interpreter of the worker")
	m.server.Register("another-token")
	p.leaves(1, "potato-agent: this token was replaced by a newer one")
}

// A second agent on the same workdir is refused, and told so.
func TestAgentWorkdirIsTaken(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	p := m.start()
	agenttest.Wait(t, "a question", func() (bool, string) { return len(m.server.Claims()) > 0, p.out.String() })
	m.start().leaves(1, "another agent works in "+m.workdir()+" already (process "+pidText(p)+"); stop that one, or give this one a folder of its own with --workdir")
	p.signal(syscall.SIGTERM)
	p.leaves(0, "")
}

// Failures before anything begins are one line that says what to do (K5).
func TestAgentFailures(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	token := m.env("POTATO_TRAINING_TOKEN=" + m.token)
	page := newPage(t)
	for _, c := range []struct {
		code int
		args []string
		want string
	}{
		{2, nil, "potato-agent: missing flags: --backend=NAME, --server=URL; see potato-agent --help"},
		{2, []string{"--server", m.url, "--backnd", "lab"}, "unknown flag --backnd"},
		{1, []string{"--server", "annotate.example.org", "--backend", "lab"}, "the server's URL must begin with http:// or https://"},
		{1, []string{"--server", "http://<this-server>:8000", "--backend", "lab"}, "the server's URL"},
		{1, []string{"--server", m.url, "--backend", "lab", "--python", "/no/python"}, "/no/python was not found on this machine; give another interpreter with --python"},
		{1, []string{"--server", m.url, "--backend", "lab", "--ca", "/no/ca.pem"}, "--ca /no/ca.pem cannot be read"},
		{1, []string{"--server", page, "--backend", "lab"}, "is no potato training server: it answers 404 Not Found; check --server"},
	} {
		code, out := m.answers(token, c.args...)
		last := out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:]
		if code != c.code || !strings.HasPrefix(last, "potato-agent: ") || !strings.Contains(last, c.want) {
			t.Errorf("%v: exit code %d, %q; want %d, %q", c.args, code, out, c.code, c.want)
		}
	}
	if code, out := m.answers(token, "--help"); code != 0 || !strings.Contains(out, "Example:") || !strings.Contains(out, "--token-file=FILE") || strings.Contains(out, "--lease") {
		t.Errorf("--help: %d\n%s", code, out)
	}
	if code, out := m.answers(token, "--version"); code != 0 || out != "dev\n" {
		t.Errorf("--version: %d, %q", code, out)
	}
}

func newPage(t *testing.T) string {
	t.Helper()
	s := listen(t, http.NotFoundHandler())
	return s.URL
}

// --print-systemd prints a service that starts the agent with the same flags, and asks nobody.
func TestAgentPrintsAService(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	code, out := m.answers(m.env("HTTPS_PROXY=http://proxy:3128", "HTTP_PROXY=http://me:secret@proxy:3128"),
		"--server", "https://annotate.example.org/", "--backend", "lab", "--workdir", "/data/my jobs", "--python", "/opt/100%/python", "--keep", "--print-systemd")
	for _, want := range []string{
		"\nExecStart=" + program + " --server https://annotate.example.org --backend lab --token-file ",
		`/.config/potato-training/lab.token --python /opt/100%%/python --workdir "/data/my jobs" --keep` + "\n",
		"\nKillMode=process\n", "\nOOMPolicy=continue\n", "\nRestart=on-failure\n", "\nEnvironment=HTTPS_PROXY=http://proxy:3128\n", "\nWantedBy=multi-user.target\n",
	} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, want %q in\n%s", code, want, out)
		}
	}
	if strings.Contains(out, "secret") {
		t.Errorf("a password is in\n%s", out)
	}
	if verify, err := exec.LookPath("systemd-analyze"); err == nil {
		unit := filepath.Join(t.TempDir(), "potato-agent-lab.service")
		if err := os.WriteFile(unit, []byte(out), 0o600); err != nil {
			t.Fatal(err)
		}
		if said, err := exec.Command(verify, "verify", "--man=no", unit).CombinedOutput(); bytes.Contains(said, []byte(unit+":")) {
			t.Errorf("systemd-analyze: %v\n%s", err, said)
		}
	}
}

// The agent is small, and it is no server.
func TestAgentIsSmall(t *testing.T) {
	t.Parallel()
	st, err := os.Stat(program)
	if err != nil || st.Size() > 12<<20 {
		t.Errorf("%v bytes, %v; at most 12 MB", st.Size(), err)
	}
	deps, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"sqlite", "huma", "potato/store", "potato/handlers", "potato/runners", "potato/project", "potato/spa"} {
		if strings.Contains(string(deps), bad) {
			t.Errorf("it links %s", bad)
		}
	}
}
