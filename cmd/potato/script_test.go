package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

// The scripts in testdata/script run this very program: TestMain makes it the command potato.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"potato": main})
}

// TestScript runs the scripts, which read like a manual. The first word of a script's name is the command it is about.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "serves": serves},
	})
}

// exits CODE COMMAND… runs a command and wants its exit code (K5).
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var failed *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &failed) {
		got = failed.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// serves CODE ARGUMENT… starts a server, waits until it has printed its address and answers there, interrupts it and wants
// its exit code. What it said on stderr is left in server.log.
func serves(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: serves CODE ARGUMENT…")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	dir, _, _ := strings.Cut(ts.Getenv("PATH"), string(filepath.ListSeparator)) // testscript puts the program there
	server := exec.CommandContext(ctx, filepath.Join(dir, "potato"), append([]string{"start"}, args[1:]...)...)
	server.Dir = ts.Getenv("WORK")
	server.Env = append(os.Environ(), "HOME="+server.Dir)
	stderr, err := os.Create(ts.MkAbs("server.log"))
	ts.Check(err)
	defer func() { ts.Check(stderr.Close()) }()
	server.Stderr = stderr
	stdout, err := server.StdoutPipe()
	ts.Check(err)
	ts.Check(server.Start())
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	healthy := answers(ctx, line)
	interrupted := server.Process.Signal(os.Interrupt)
	waited := server.Wait()
	if code := server.ProcessState.ExitCode(); readErr != nil || healthy != nil || interrupted != nil || strconv.Itoa(code) != args[0] {
		ts.Fatalf("printed %q (%v), health: %v, interrupt: %v, exit code %d, want %s (%v):\n%s",
			line, readErr, healthy, interrupted, code, args[0], waited, ts.ReadFile("server.log"))
	}
}

// answers asks the server whose line this is for its health.
func answers(ctx context.Context, line string) error {
	at, err := url.Parse(strings.TrimSpace(line[max(strings.Index(line, "http"), 0):]))
	if err != nil {
		return err
	}
	return ask(ctx, at.ResolveReference(&url.URL{Path: "/healthz"}).String())
}

func ask(ctx context.Context, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		err = errors.New(resp.Status)
	}
	return errors.Join(err, resp.Body.Close())
}
