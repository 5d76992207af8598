package project

import (
	"cmp"
	_ "embed" // the annotation tool's keys and types
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"potato/api"
)

// Report is what was found in a config, in the order of the file. Errors stop a start; warnings do not.
type Report struct {
	File         string
	Errors       []api.Problem
	Warnings     []api.Problem
	Acknowledged []api.Problem // warnings that the config's validation.acknowledge lets pass; only Validate fills it
}

// OK tells whether the config passes: without errors and, when strict, without warnings that nobody acknowledged.
func (r *Report) OK(strict bool) bool {
	return len(r.Errors) == 0 && (!strict || len(r.Warnings) == 0)
}

// Load reads a config for a start. The config is nil when there are errors: nothing may run on a part of it.
func Load(path string) (*Config, *Report) {
	c, r := load(path)
	if len(r.Errors) > 0 {
		return nil, r
	}
	return c, r
}

// Validate reads a config for its author: as Load does, and with what validation.acknowledge lets pass set apart (V4).
func Validate(path string) *Report {
	c, r := load(path)
	if c != nil {
		acknowledge(c, r)
	}
	return r
}

// load returns a config whenever the file has the form of one, whatever is wrong in it.
func load(path string) (*Config, *Report) {
	r := &Report{File: path}
	text, problem := readConfig(path)
	if problem != "" {
		r.Errors = []api.Problem{{Message: problem}}
		return nil, r
	}
	root, errs, warns := parseYAML(text)
	r.Errors, r.Warnings = errs, warns
	if root == nil {
		return nil, r
	}
	d := &decoder{budget: maxConfigNodes, errs: errs, warns: warns}
	c := &Config{File: path, Dir: filepath.Dir(absolute(path))}
	for _, e := range d.decodeStruct(root, reflect.ValueOf(c).Elem(), "") {
		d.topLevelKey(e)
	}
	for i := range c.ModelTraining.Backends {
		b := &c.ModelTraining.Backends[i]
		if b.HeartbeatTimeoutS == 0 {
			b.HeartbeatTimeoutS = c.ModelTraining.HeartbeatTimeoutS
		}
	}
	if d.budget >= 0 {
		d.checkStudy(root, c)
		d.checkTraining(root, c)
	}
	r.Errors, r.Warnings = inOrder(d.errs), inOrder(d.warns)
	return c, r
}

func readConfig(path string) (text []byte, problem string) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "Config file not found: " + path
	} else if err != nil {
		return nil, "Config file cannot be read: " + reason(err)
	}
	defer func() { _ = f.Close() }() // It was only read.
	if s, err := f.Stat(); err == nil && s.IsDir() {
		return nil, path + " is a folder; name the config file in it"
	}
	text, err = io.ReadAll(io.LimitReader(f, maxConfigBytes+1))
	if err != nil {
		return nil, "Config file cannot be read: " + reason(err)
	}
	if len(text) > maxConfigBytes {
		return nil, fmt.Sprintf("Config file is larger than %d MB", maxConfigBytes>>20)
	}
	return text, ""
}

// reason is a file error without the operation: "open x: permission denied" tells a reader nothing that x did not.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Path + ": " + p.Err.Error()
	}
	return err.Error()
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path // The working directory is gone: what is relative stays so.
}

//go:embed config_tool_keys.txt
var toolKeys string

var topLevelKeys = strings.Fields(toolKeys)

// topLevelKey warns of a key that neither we nor the annotation tool have (C1).
func (d *decoder) topLevelKey(e entry) {
	switch {
	case e.key.kind != kindText:
		d.warn(e.key, shown(e.key.text), "", "is %s to YAML, not the name of a key; put it in quotes", e.key.kind.noun())
	case !slices.Contains(topLevelKeys, e.key.text):
		d.warn(e.key, shown(e.key.text), d.suggest(e.key.text, topLevelKeys), "is not a key of the config; it is ignored")
	}
}

// inOrder sorts problems by their place in the file.
func inOrder(problems []api.Problem) []api.Problem {
	slices.SortStableFunc(problems, func(a, b api.Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return slices.Compact(problems)
}
