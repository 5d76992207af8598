package agentcmd_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"potato/cmd/internal/agentcmd"
)

// On a terminal the last line says what is going on, log lines go above it, and nothing is left of it at the end.
func TestScreen(t *testing.T) {
	var out strings.Builder
	s := agentcmd.NewScreenOf(&out, 40)
	write := func(line string) {
		if n, err := fmt.Fprint(s, line); err != nil || n != len(line) {
			t.Errorf("wrote %d of %q, %v", n, line, err)
		}
	}
	write("log 1\n")
	agentcmd.Report(s, "", "waiting for a run")
	write("log 2\n")
	agentcmd.Report(s, "20261129T192252-d3d870", "epoch\x1b[31m 1\nof 3, and more than that")
	agentcmd.Close(s)
	write("log 3\n")
	const clear = "\r\x1b[K"
	want := "log 1\n" + clear + "waiting for a run" + clear + "log 2\nwaiting for a run" + clear + "20261129T192252-d3d870  epoch[31m 1 of…" + clear + "log 3\n"
	if got := out.String(); got != want {
		t.Errorf("%q\nwant %q", got, want)
	}
}

func TestScreenWithoutATerminal(t *testing.T) {
	var out strings.Builder
	s := agentcmd.NewScreenOf(&out, 0)
	agentcmd.Report(s, "", "waiting for a run")
	_, _ = fmt.Fprint(s, "log\n") // a Builder takes everything
	agentcmd.Close(s)
	if got := out.String(); got != "log\n" {
		t.Errorf("%q", got)
	}
}

// K4: the interpreter of the active environment, else python3.
func TestActivePython(t *testing.T) {
	venv, conda := t.TempDir(), t.TempDir()
	for _, dir := range []string{venv, conda} {
		if err := os.Mkdir(filepath.Join(dir, "bin"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "bin", "python"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ venv, conda, want string }{
		{"", "", "python3"}, {venv, conda, venv + "/bin/python"}, {"", conda, conda + "/bin/python"}, {venv + "/gone", "", "python3"},
	} {
		t.Setenv("VIRTUAL_ENV", c.venv)
		t.Setenv("CONDA_PREFIX", c.conda)
		if got := agentcmd.ActivePython(); got != c.want {
			t.Errorf("VIRTUAL_ENV=%s CONDA_PREFIX=%s: %s, want %s", c.venv, c.conda, got, c.want)
		}
	}
}

func TestUnitWord(t *testing.T) {
	for in, want := range map[string]string{
		"/usr/bin/x": "/usr/bin/x", "a b": `"a b"`, "100%": "100%%", "$HOME": "$$HOME", `a\b`: `a\\b`, `say "hi"`: `"say \"hi\""`,
	} {
		if got := agentcmd.UnitWord(in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// The times that are shipped: 300 s without the server end a run (G5), and a worker's lease is its job's.
func TestShippedTimes(t *testing.T) {
	var c agentcmd.Command
	parser, err := kong.New(&c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse([]string{"--server", "http://localhost", "--backend", "lab"}); err != nil {
		t.Fatal(err)
	}
	if c.ServerLoss != 300*time.Second || c.Lease != 0 {
		t.Errorf("server loss %v, lease %v", c.ServerLoss, c.Lease)
	}
}
