// Command potato trains models on the labels that annotators give in a study: it checks the study's config, serves the
// training page and API, and says whether runs could start.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"potato/api"
)

// version is set by the build: -ldflags "-X main.version=…".
var version = "dev"

// The exit codes of every command (K5).
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// commands is the tree of what can be typed.
type commands struct {
	Start      startCommand      `cmd:"" help:"Serve the training page and API of a study."`
	Validate   validateCommand   `cmd:"" help:"Check a study's config and report every problem at once."`
	Training   trainingCommands  `cmd:"" help:"Look after the places where runs train."`
	Completion completionCommand `cmd:"" help:"Print a script that completes commands in your shell."`
	Exec       execCommand       `cmd:"" hidden:"" help:"Run a worker; used by the program itself."`
	Rank       rankCommand       `cmd:"" hidden:"" passthrough:"" help:"Run a worker once a GPU; used by the program itself."`
	Hosted     hostedCommand     `cmd:"" hidden:"" help:"Work on one run of a server that has logged in here; used by the program itself."`
	Stop       stopCommand       `cmd:"" hidden:"" help:"End what runs in a job directory; used by the program itself."`

	Version kong.VersionFlag `help:"Print the version."`
}

// trainingCommands are the commands about backends.
type trainingCommands struct {
	Check    checkCommand    `cmd:"" help:"Say whether a run could start on a backend."`
	Register registerCommand `cmd:"" help:"Issue a token for the agents of a backend."`
	Trainers trainersCommand `cmd:"" help:"List the trainers and whether they are available here."`
	Agent    agentCommand    `cmd:"" help:"Train the runs of a backend on this machine."`
}

// program is what commands get beside their flags.
type program struct {
	in       io.Reader
	out, err io.Writer
	parser   *kong.Kong
}

// exit ends a command that has said itself what there was to say.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit %d", int(e)) }

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main with its surroundings given; it returns the exit code.
func run(args []string, in io.Reader, out, errs io.Writer) (code int) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// kong leaves through its exit function after --help and --version; the panic brings that back here.
	defer func() {
		if left, ok := recover().(exit); ok {
			code = int(left)
		}
	}()
	p := &program{in: in, out: out, err: errs}
	p.parser = kong.Must(&commands{},
		kong.Name("potato"),
		kong.Description("Train models on the labels of an annotation study, on this machine, and see how good they are."),
		kong.Writers(out, errs),
		kong.Exit(func(code int) { panic(exit(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100, FlagsLast: true}),
		kong.Vars{"version": version},
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.Bind(p),
	)
	parsed, err := p.parser.Parse(args)
	if err != nil {
		_, _ = fmt.Fprintf(errs, "potato: %s; see %s --help\n", err, commandOf(err)) // Nobody is left to be told.
		return exitUsage
	}
	return p.report(parsed.Run())
}

// commandOf names the command whose flags were wrong.
func commandOf(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil {
		if node := wrong.Context.Selected(); node != nil {
			return node.FullPath()
		}
	}
	return "potato"
}

// report turns how a command ended into a line on stderr and an exit code.
func (p *program) report(err error) int {
	var left exit
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &left):
		return int(left)
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	line := err.Error()
	var known *api.Error
	if errors.As(err, &known) && known.Hint != "" {
		line += "; " + known.Hint
	}
	_, _ = fmt.Fprintln(p.err, "potato: "+line) // Nobody is left to be told.
	return exitFailed
}
