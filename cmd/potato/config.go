package main

import (
	"fmt"
	"io"
	"strings"

	"potato/api"
	"potato/project"
)

// loadConfig reads a config for a command that works with it. It prints what is wrong, in the words of validate (V2),
// and refuses when any of it is an error.
func (p *program) loadConfig(path string) (*project.Config, error) {
	c, report := project.Load(path)
	lines := &lines{}
	lines.problems(report, "", report.Errors)
	lines.problems(report, "warning: ", report.Warnings)
	if err := lines.writeTo(p.err); err != nil {
		return nil, err
	}
	if len(report.Errors) > 0 {
		return nil, api.Invalidf("config_invalid", "%s has %s", path, count(len(report.Errors), "error")).
			WithHint("mend what is listed above")
	}
	return c, nil
}

// lines are the lines of a report, written at once.
type lines struct{ strings.Builder }

// problems adds one line for each problem: where, what, and what was probably meant.
func (l *lines) problems(r *project.Report, mark string, problems []api.Problem) {
	for _, p := range problems {
		if p.Line > 0 {
			l.addf("%s:%d:%d: ", r.File, p.Line, p.Column)
		}
		l.WriteString(mark + p.Message)
		if p.Suggestion != "" {
			l.WriteString("; did you mean " + p.Suggestion + "?")
		}
		l.WriteByte('\n')
	}
}

func (l *lines) addf(format string, args ...any) {
	_, _ = fmt.Fprintf(&l.Builder, format, args...) // A Builder takes everything.
}

func (l *lines) writeTo(w io.Writer) error {
	_, err := io.WriteString(w, l.String())
	return err
}

// count is a number with its noun: 1 error, 2 errors.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
