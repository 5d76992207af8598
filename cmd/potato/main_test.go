package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every command that people see has --help with an example and the exit codes (K5).
func TestEveryCommandHasAnExample(t *testing.T) {
	model := kong.Must(&commands{}, kong.Vars{"version": version}).Model
	seen := 0
	for _, n := range model.Leaves(true) {
		seen++
		args := append(strings.Fields(n.Path()), "--help")
		var out, errs bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, &errs); code != exitOK || errs.Len() > 0 {
			t.Errorf("%v: exit code %d, %s", args, code, &errs)
		}
		for _, want := range []string{"Example", "    ", n.Name, "Exit codes: 0"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v does not contain %q:\n%s", args, want, &out)
			}
		}
	}
	if seen < 5 {
		t.Errorf("only %d commands were looked at", seen)
	}
}
