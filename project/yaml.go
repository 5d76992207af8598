package project

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"potato/api"
)

// maxConfigBytes bounds the config file, and maxConfigNodes what aliases and merge keys may make of it.
const (
	maxConfigBytes = 4 << 20
	maxConfigNodes = 1 << 20
)

// node is one value of the config as the annotation tool reads it: aliases followed, merge keys and environment
// variables put in, scalars typed by YAML 1.1. The text of a scalar is kept as it is written.
type node struct {
	kind    kind
	text    string
	plain   bool // written without quotes
	unset   string
	env     bool // the text came from an environment variable
	line    int
	column  int
	list    []*node
	entries []entry
}

// entry is one key of a map.
type entry struct {
	key   *node
	value *node
}

// get returns the value of a key; an absent key and an empty one are both nil.
func (n *node) get(key string) *node {
	if n == nil || n.kind != kindMap {
		return nil
	}
	for _, e := range n.entries {
		if e.key.text == key && e.value.kind != kindNull {
			return e.value
		}
	}
	return nil
}

// id tells keys apart: 1 and "1" are two.
func (n *node) id() string { return strconv.FormatBool(n.kind == kindText) + n.text }

// reader turns a parsed document into nodes and notes what it finds on the way.
type reader struct {
	errs, warns []api.Problem
	open        map[*yaml.Node]bool
	done        map[*yaml.Node]*node
	nodes       int
}

// parseYAML reads a config's text. The root is nil when there is nothing to go on with; the problems say why.
//
// The parser is the YAML organisation's port of libyaml, which shares its grammar with PyYAML: a config that works in
// the annotation tool must not be read differently here.
func parseYAML(text []byte) (root *node, errs, warns []api.Problem) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if !utf8.Valid(text) {
		return nil, []api.Problem{{Line: badLine(text), Column: 1,
			Message: "The config file is not UTF-8 text; save it with that encoding"}}, nil
	}
	// Only a name of the version stands there; PyYAML takes any of version 1.
	if rest, ok := bytes.CutPrefix(text, []byte("%YAML 1.")); ok {
		text = append([]byte("%YAML 1.1"), bytes.TrimLeft(rest, "0123456789")...)
	}
	in, err := yaml.NewLoader(bytes.NewReader(text), yaml.WithUniqueKeys(false))
	var doc, more yaml.Node
	if err == nil {
		err = in.Load(&doc)
	}
	if errors.Is(err, io.EOF) {
		return nil, []api.Problem{emptyFile}, nil
	} else if err != nil {
		return nil, []api.Problem{syntaxProblem(err, text)}, nil
	}
	if err := in.Load(&more); err == nil {
		return nil, []api.Problem{{Line: max(more.Line, 1), Column: max(more.Column, 1),
			Message: "The config file holds more than one YAML document; leave one and remove the --- before the others"}}, nil
	} else if !errors.Is(err, io.EOF) {
		return nil, []api.Problem{syntaxProblem(err, text)}, nil
	}
	r := &reader{open: map[*yaml.Node]bool{}, done: map[*yaml.Node]*node{}}
	n := r.read(doc.Content[0])
	switch {
	case r.nodes > maxConfigNodes:
		return nil, []api.Problem{{Line: 1, Column: 1,
			Message: "The config file grows beyond all measure when its aliases and merge keys are followed"}}, nil
	case len(r.errs) > 0:
		return nil, r.errs, r.warns
	case n.kind == kindNull:
		return nil, []api.Problem{emptyFile}, nil
	case n.kind != kindMap:
		return nil, []api.Problem{{Line: n.line, Column: n.column,
			Message: "Config root must be a YAML mapping of keys to values; it is " + n.kind.noun()}}, nil
	}
	return n, nil, r.warns
}

var emptyFile = api.Problem{Line: 1, Column: 1, Message: "Config file is empty"}

// syntaxProblem words what the parser says. It names characters and anchors, never values.
func syntaxProblem(err error, text []byte) api.Problem {
	p := api.Problem{Line: 1, Column: 1, Message: "it cannot be read"}
	var wrong *yaml.LoadError
	if errors.As(err, &wrong) {
		what, _, _ := strings.Cut(wrong.Message, " (value") // The value may be part of a secret.
		p.Line, p.Column, p.Message = max(wrong.Mark.Line, 1), max(wrong.Mark.Column, 1), harmless(what)
	}
	lines := bytes.Split(text, []byte("\n"))
	if p.Line <= len(lines) && bytes.HasPrefix(bytes.TrimLeft(lines[p.Line-1], " "), []byte("\t")) {
		p.Message = "the line begins with a tab; YAML is indented with spaces"
	}
	p.Message = "YAML parse error: " + p.Message
	return p
}

func badLine(text []byte) int {
	line := 1
	for l := range bytes.SplitAfterSeq(text, []byte("\n")) {
		if !utf8.Valid(l) {
			return line
		}
		line++
	}
	return line
}

func (r *reader) fail(n *yaml.Node, message string) {
	r.errs = append(r.errs, api.Problem{Line: n.Line, Column: n.Column, Message: message})
}

func (r *reader) read(y *yaml.Node) *node {
	if y.Kind == yaml.AliasNode {
		if r.open[y.Alias] {
			r.fail(y, "The alias *"+shown(y.Value)+" stands inside what it is an alias of")
			return &node{line: y.Line, column: y.Column}
		}
		// What is wrong with an alias's content is reported where it is used; its children stay where they are.
		n := *r.read(y.Alias)
		n.line, n.column = y.Line, y.Column
		return &n
	}
	if n := r.done[y]; n != nil {
		return n
	}
	if r.nodes++; r.nodes > maxConfigNodes {
		return &node{line: y.Line, column: y.Column}
	}
	r.open[y] = true
	defer delete(r.open, y)
	n := &node{line: y.Line, column: y.Column}
	if y.Style&yaml.TaggedStyle != 0 && !knownTag(y.Tag) {
		r.fail(y, "The tag "+shown(y.Tag)+" means nothing here; remove it")
	}
	switch y.Kind {
	case yaml.MappingNode:
		n.kind = kindMap
		r.readMap(n, y)
	case yaml.SequenceNode:
		n.kind = kindList
		for _, c := range y.Content {
			n.list = append(n.list, r.read(c))
		}
	default:
		r.readScalar(n, y)
	}
	r.done[y] = n
	return n
}
