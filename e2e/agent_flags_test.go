package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// K4: both programs take the same flags and do the same: --once leaves after one run, --keep keeps its bundle, --workdir and
// the home's default are where it lies, --python is the worker's interpreter, --token-file wins over the environment.
func TestAgentFlags(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t)
	s := start(t, dir)
	token := register(t, filepath.Join(dir, "config.yaml"))
	for name, program := range agentPrograms(t) {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			write(t, home, "token", token+"\n")
			interpreter := filepath.Join(home, "python")
			write(t, home, "python", fmt.Sprintf("#!/bin/sh\necho \"$@\" >> %s/asked\nexec %s \"$@\"\n", home, python(t)))
			if err := os.Chmod(interpreter, 0o700); err != nil {
				t.Fatal(err)
			}
			agent := func(args ...string) *agentProgram {
				all := append(program[1:len(program):len(program)], "--server", s.URL, "--backend", workstation, "--once", "--python", interpreter,
					"--token-file", filepath.Join(home, "token"))
				cmd := exec.Command(program[0], append(all, args...)...)
				cmd.Env = append(os.Environ(), "HOME="+home)
				return launch(t, "of-nobody", cmd)
			}

			usual := filepath.Join(home, ".cache", "potato-training")
			id := s.agentTextRun(0)
			a := agent()
			r := s.finished(id, "success")
			a.leaves(0)
			if !strings.HasSuffix(r.ArtifactURI, ":"+filepath.Join(usual, "artifacts", id)) {
				t.Errorf("artifact_uri %q, want a folder below %s", r.ArtifactURI, usual)
			}
			if left, _ := os.ReadDir(filepath.Join(usual, "jobs")); len(left) > 0 {
				t.Errorf("without --keep %v is left", left)
			}
			if asked, _ := os.ReadFile(filepath.Join(home, "asked")); !strings.Contains(string(asked), "worker.py --spec "+usual) {
				t.Errorf("--python was asked for:\n%s", asked)
			}

			workdir := filepath.Join(t.TempDir(), "jobs of mine")
			id = s.agentTextRun(0)
			a = agent("--keep", "--workdir", workdir)
			r = s.finished(id, "success")
			a.leaves(0)
			if !strings.HasSuffix(r.ArtifactURI, ":"+filepath.Join(workdir, "artifacts", id)) {
				t.Errorf("artifact_uri %q, want a folder below %s", r.ArtifactURI, workdir)
			}
			if _, err := os.Stat(filepath.Join(workdir, "jobs", id, "bundle", "manifest.json")); err != nil {
				t.Errorf("--keep kept no bundle: %v", err)
			}
		})
	}
}

// K4, T39: a token file that others may read is refused before anything is sent.
func TestAgentTokenFileForAll(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	home := t.TempDir()
	write(t, home, "token", token)
	file := filepath.Join(home, "token")
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, program := range agentPrograms(t) {
		cmd := exec.Command(program[0], append(program[1:len(program):len(program)], "--server", s.URL, "--backend", workstation, "--once",
			"--workdir", home, "--python", python(t), "--token-file", file)...)
		out, err := cmd.CombinedOutput()
		said := strings.TrimSpace(string(out))
		if cmd.ProcessState.ExitCode() != 1 || strings.Contains(said, "\n") ||
			!strings.Contains(said, "can be read by other users of this machine") || !strings.Contains(said, "chmod 600 "+file) {
			t.Errorf("%s left with %v and said:\n%s", name, err, said)
		}
	}
	if code, said := ask(t, "training", "check", workstation, filepath.Join(dir, "config.yaml")); code != 0 || !strings.Contains(said, "never used") {
		t.Errorf("the token was sent all the same; the check left with %d and said:\n%s", code, said)
	}
}

// K4: the service file's own command trains a run.
func TestAgentPrintsItsService(t *testing.T) {
	t.Parallel()
	dir := agentStudy(t)
	token := register(t, filepath.Join(dir, "config.yaml"))
	s := start(t, dir)
	for name, program := range agentPrograms(t) {
		home := t.TempDir()
		write(t, home, "token", token)
		cmd := exec.Command(program[0], append(program[1:len(program):len(program)], "--server", s.URL, "--backend", workstation,
			"--workdir", filepath.Join(home, "work"), "--python", python(t), "--token-file", filepath.Join(home, "token"), "--print-systemd")...)
		unit, err := cmd.Output()
		if err != nil || strings.Contains(string(unit), token) {
			t.Fatalf("%s: %v\n%s", name, err, unit)
		}
		_, line, ok := strings.Cut(string(unit), "\nExecStart=")
		line, _, _ = strings.Cut(line, "\n")
		words := strings.Fields(line)
		if !ok || !strings.HasPrefix(line, strings.Join(program, " ")+" --server ") {
			t.Fatalf("%s: the service is\n%s", name, unit)
		}
		id := s.agentTextRun(0)
		a := launch(t, "of-nobody", exec.Command(words[0], append(words[1:], "--once")...))
		s.finished(id, "success")
		a.leaves(0)
	}
}

// K3: the one-line install that registration prints brings the agent for this platform from the server, checks and starts
// it, with nothing but curl.
func TestAgentInstallsFromTheServer(t *testing.T) {
	t.Parallel()
	_, err := exec.LookPath("curl")
	need(t, err == nil, "curl")
	dir := agentStudy(t)
	code, said := ask(t, "training", "register", workstation, filepath.Join(dir, "config.yaml"))
	token := tokenPattern.FindStringSubmatch(said)
	_, install, found := strings.Cut(said, "If potato is not installed there:\n\n  ")
	if code != 0 || token == nil || !found {
		t.Fatalf("register left with %d and said:\n%s", code, said)
	}
	s := start(t, dir)
	install = strings.ReplaceAll(strings.TrimSpace(install), "http://<this-server>:8000", s.URL)
	home := t.TempDir()
	cmd := exec.Command("sh", "-c", install+" --once --workdir "+filepath.Join(home, "work")+" --python "+python(t))
	cmd.Dir = home
	id := s.agentTextRun(0)
	a := launch(t, token[1], cmd)
	s.finished(id, "success")
	a.leaves(0)
	if _, err := os.Stat(filepath.Join(home, "potato-agent")); err != nil {
		t.Error(err)
	}
}
