package main

import (
	"encoding/json"

	"potato/api"
	"potato/project"
)

type validateCommand struct {
	Config string `arg:"" placeholder:"config.yaml" help:"The study's config."`
	Strict bool   `help:"Fail on warnings, too, unless validation.acknowledge in the config lists them."`
	JSON   bool   `name:"json" help:"Print the report as JSON."`
}

// Help is the longer text of --help.
func (*validateCommand) Help() string {
	return `Every error and every warning is printed with its line and column. "potato start" refuses on the same errors.

Example:

  potato validate config.yaml --strict

Exit codes: 0 the config is valid, 1 it is not, 2 wrong usage.`
}

// Run prints the report on stdout.
func (c *validateCommand) Run(p *program) error {
	report := project.Validate(c.Config)
	ok := report.OK(c.Strict)
	var err error
	if c.JSON {
		err = writeJSON(p.out, newValidation(report, ok))
	} else {
		err = c.describe(report).writeTo(p.out)
	}
	if err == nil && !ok {
		return exit(exitFailed)
	}
	return err
}

// describe is the report for people: errors, warnings, acknowledged warnings, and the verdict last.
func (c *validateCommand) describe(r *project.Report) *lines {
	l := &lines{}
	l.problems(r, "", r.Errors)
	l.problems(r, "warning: ", r.Warnings)
	l.problems(r, "acknowledged: ", r.Acknowledged)
	warnings := count(len(r.Warnings), "warning")
	switch {
	case len(r.Errors) > 0 && len(r.Warnings) > 0:
		l.addf("%s has %s and %s\n", r.File, count(len(r.Errors), "error"), warnings)
	case len(r.Errors) > 0:
		l.addf("%s has %s\n", r.File, count(len(r.Errors), "error"))
	case len(r.Warnings) > 0 && c.Strict:
		l.addf("%s has %s, and --strict fails on that\n", r.File, warnings)
	case len(r.Warnings) > 0:
		l.addf("%s is valid, with %s; --strict fails on that\n", r.File, warnings)
	case len(r.Acknowledged) > 0:
		l.addf("%s is valid, with %s acknowledged\n", r.File, count(len(r.Acknowledged), "warning"))
	default:
		l.addf("%s is valid\n", r.File)
	}
	return l
}

// validation is the report for programs (V5). All of a finding's fields are there, whatever they hold.
type validation struct {
	ConfigFile   string    `json:"config_file"`
	OK           bool      `json:"ok"`
	Errors       []finding `json:"errors"`
	Warnings     []finding `json:"warnings"`
	Acknowledged []finding `json:"acknowledged"`
}

type finding struct {
	Path       string `json:"path"`
	Line       int    `json:"line"`
	Column     int    `json:"column"`
	Message    string `json:"message"`
	Suggestion string `json:"suggestion"`
}

func newValidation(r *project.Report, ok bool) validation {
	return validation{r.File, ok, findings(r.Errors), findings(r.Warnings), findings(r.Acknowledged)}
}

func findings(problems []api.Problem) []finding {
	list := make([]finding, 0, len(problems))
	for _, p := range problems {
		list = append(list, finding(p))
	}
	return list
}

// writeJSON prints a value as people read it, without escaping what only HTML minds.
func writeJSON(w interface{ Write([]byte) (int, error) }, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
