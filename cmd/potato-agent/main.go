// Command potato-agent trains runs of a potato training server on the machine it is started on. It is `potato training
// agent` as a program of its own: small, without the server.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"potato/agent"
	"potato/api"
	"potato/cmd/internal/agentcmd"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "dev"

// The exit codes (K5).
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

type flags struct {
	agentcmd.Command

	Version kong.VersionFlag `help:"Print the version."`
}

// Help is the longer text of --help.
func (*flags) Help() string { return agentcmd.Help("potato-agent") }

// exit is how kong leaves after --help and --version.
type exit int

func main() {
	// The shim between agent and worker, the launcher of ranks, and what a server starts that has logged in; used by the
	// programs themselves.
	if len(os.Args) > 1 && os.Args[1] == "rank" {
		os.Exit(agent.Rank(os.Args[2:], os.Stderr))
	}
	if len(os.Args) == 2 {
		switch os.Args[1] {
		case "exec":
			os.Exit(agent.Exec(os.Stdin))
		case "hosted":
			os.Exit(agent.Hosted(os.Stdin, os.Stdout))
		case "stop":
			os.Exit(agent.Stop(os.Stdin))
		}
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its surroundings given; it returns the exit code.
func run(args []string, out io.Writer, errs io.Writer) (code int) {
	defer func() {
		switch left := recover().(type) {
		case nil:
		case exit:
			code = int(left)
		default:
			panic(left)
		}
	}()
	var f flags
	parser := kong.Must(&f,
		kong.Name("potato-agent"),
		kong.Description("Train the runs of a backend on this machine."),
		kong.Writers(out, errs),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Vars{"version": version},
	)
	if _, err := parser.Parse(args); err != nil {
		_, _ = fmt.Fprintf(errs, "potato-agent: %s; see potato-agent --help\n", err) // Nobody is left to be told.
		return exitUsage
	}
	err := f.Start(context.Background(), agentcmd.Program{Version: version, Out: out, Err: errs})
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	line := err.Error()
	var known *api.Error
	if errors.As(err, &known) && known.Hint != "" {
		line += "; " + known.Hint
	}
	_, _ = fmt.Fprintln(errs, "potato-agent: "+line) // Nobody is left to be told.
	return exitFailed
}
