// Command bench measures this training server and the published annotation tool's own training side by side: the same
// studies, the same Python, one after the other in pairs, and the ratio of the medians with the bar beside it (F1, F2).
// `make bench` runs it; docs/benchmarks.md says what each line means.
//
// A missed bar is printed and changes nothing else: the exit code is 1 only when something broke.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		log.New(os.Stderr, "bench: ", 0).Print(err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	b := &bench{progress: log.New(stderr, "", 0)}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(stderr)
	only := flags.String("only", "", "measure `NAMES` only, separated by commas: "+strings.Join(names(), " "))
	flags.IntVar(&b.repeats, "repeats", 7, "how often each pair is measured")
	jsonFile := flags.String("json", "", "write the figures, with every sample, to `FILE` as well")
	flags.StringVar(&b.potato, "potato", "bin/potato", "this server's `PROGRAM`")
	flags.StringVar(&b.peer, "peer", ".venv-peer", "the virtual `ENVIRONMENT` of the published tool")
	keep := flags.Bool("keep", false, "keep the studies and the servers' logs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(*only)
	if err != nil {
		return err
	}
	if err := b.open(); err != nil {
		return err
	}
	if *keep {
		b.progress.Print("studies and logs: ", b.dir)
	} else {
		defer os.RemoveAll(b.dir) //nolint:errcheck // a temporary folder; the figures stand without it
	}
	report := newReport(b)
	for _, m := range chosen {
		b.progress.Printf("%s: %s", m.name, m.what)
		rows, err := m.measure(ctx, b)
		report.Rows = append(report.Rows, rows...)
		if err != nil {
			return errors.Join(fmt.Errorf("%s: %w", m.name, err), report.print(stdout))
		}
	}
	report.finish()
	if err := report.print(stdout); err != nil || *jsonFile == "" {
		return err
	}
	return report.write(*jsonFile)
}

// measurement is one thing to measure; it may give several rows.
type measurement struct {
	name, what string
	measure    func(context.Context, *bench) ([]row, error)
}

func measurements() []measurement {
	return []measurement{
		{"start", "from the command to the first page", measureStart},
		{"memory", "resident memory of an idle server", measureMemory},
		{"validate", "`potato validate` of one config", measureValidate},
		{"small", "POST to success, 60 items labelled by two", measureSmall},
		{"large", "POST to success, 10,000 items, 5,000 labelled by two", measureLarge},
		{"free-text", "POST to success, 1,500 items with a free-text scheme beside", measureFreeText},
		{"million", "1,000,000 items, this server alone", measureMillion},
		{"ingest", "1,000,000 predictions into the store, against the sqlite3 shell", measureIngest},
		{"agents", "1,000 idle agents, and how soon one of them has a run", measureAgents},
		{"bundle", "a bundle of 300 MB, against nginx", measureBundle},
		{"copy", "model files copied from a host: 500 MB in one file against scp, 2,000 files of 50 kB against tar over ssh", measureCopy},
		{"ssh-start", "how much later than locally a run begins on a host, in times of `ssh HOST true`", measureSSHStart},
		{"events", "2,000 events a second from one agent to 50 readers", measureEvents},
	}
}

func names() []string {
	var all []string
	for _, m := range measurements() {
		all = append(all, m.name)
	}
	return all
}

func choose(only string) ([]measurement, error) {
	all := measurements()
	if only == "" {
		return all, nil
	}
	var chosen []measurement
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(all, func(m measurement) bool { return m.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no measurement %q; there are: %s", name, strings.Join(names(), " "))
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}
