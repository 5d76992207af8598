package main

import (
	_ "embed" // the shells' scripts
	"slices"
	"strings"
	"text/template"

	"github.com/alecthomas/kong"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is the longer text of --help.
func (*completionCommand) Help() string {
	return `The script is made from the commands and flags of this very program.

Example, for the shell that is running:

  source <(potato completion bash)

Exit codes: 0 printed, 2 wrong usage.`
}

//go:embed completion.tmpl
var completionScripts string

// Run prints the script on stdout.
func (c *completionCommand) Run(p *program) error {
	scripts := template.Must(template.New("").Funcs(template.FuncMap{"quote": quote}).Parse(completionScripts))
	return scripts.ExecuteTemplate(p.out, c.Shell, listPlaces(p.parser.Model.Node, "potato"))
}

// place is a point of the command line after which the same words may follow: a command, or the program's name.
type place struct {
	Path  string
	Words []word
}

type word struct{ Text, Help string }

// listPlaces lists every command that people see from n on, n itself first.
func listPlaces(n *kong.Node, path string) []place {
	here := place{Path: path}
	var places []place
	for _, child := range n.Children {
		if child.Hidden {
			continue
		}
		here.Words = append(here.Words, word{child.Name, child.Help})
		places = append(places, listPlaces(child, path+" "+child.Name)...)
	}
	for _, f := range n.Flags {
		if !f.Hidden {
			here.Words = append(here.Words, word{"--" + f.Name, f.Help})
		}
	}
	for _, arg := range n.Positional {
		for _, v := range arg.EnumSlice() {
			if v != "" {
				here.Words = append(here.Words, word{v, ""})
			}
		}
	}
	return slices.Insert(places, 0, here)
}

// quote makes a text one word for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
