package project

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"potato/api"
)

// acknowledgement is one entry of validation.acknowledge with its place.
type acknowledgement struct {
	text string
	at   *node
	path string
}

const leastAcknowledgement = 12

// decode keeps what is wrong with the block to itself: only Validate reads it, and a start does not refuse for it (V4).
func (v *Validation) decode(_ *decoder, n *node, path string) {
	warn := func(n *node, path, suggestion, what string) {
		v.problems = append(v.problems, problemAt(n, path, suggestion, path+" "+what))
	}
	if n.kind != kindMap {
		warn(n, path, "", "must be a map of keys to values; it is ignored")
		return
	}
	for _, e := range n.entries {
		if at := join(path, e.key.text); e.key.text != "acknowledge" {
			warn(e.key, at, api.Suggest(e.key.text, []string{"acknowledge"}), "is not a key of validation; it is ignored")
		}
	}
	list := n.get("acknowledge")
	path += ".acknowledge"
	if list != nil && list.kind != kindList {
		warn(list, path, "", "must be a list of parts of warnings; it is ignored")
		return
	}
	if list == nil {
		return
	}
	for i, item := range list.list {
		at := fmt.Sprintf("%s[%d]", path, i)
		switch {
		case item.kind != kindText:
			warn(item, at, "", "must be text; it is ignored")
		case utf8.RuneCountInString(item.text) < leastAcknowledgement:
			warn(item, at, "", fmt.Sprintf("is shorter than %d characters; it is ignored", leastAcknowledgement))
		default:
			v.Acknowledge = append(v.Acknowledge, item.text)
			v.entries = append(v.entries, acknowledgement{item.text, item, at})
		}
	}
}

// acknowledge moves the warnings that the config's author knows of out of the way, and adds what is wrong with the
// entries themselves.
func acknowledge(c *Config, r *Report) {
	v := &c.Validation
	used := make([]bool, len(v.entries))
	var left []api.Problem
	for _, w := range r.Warnings {
		known, backend := false, backendOf(w.Path, c.ModelTraining.Backends)
		for i, a := range v.entries {
			if strings.Contains(w.Message, a.text) && a.speaksOf(backend) {
				known, used[i] = true, true
			}
		}
		if known {
			r.Acknowledged = append(r.Acknowledged, w)
		} else {
			left = append(left, w)
		}
	}
	left = append(left, v.problems...)
	for i, a := range v.entries {
		if !used[i] {
			left = append(left, problemAt(a.at, a.path, "", a.path+" matches no warning; remove it"))
		}
	}
	r.Warnings = inOrder(left)
}

// backendOf is the backend that a warning speaks of, or empty.
func backendOf(warningPath string, backends Backends) string {
	of := ""
	for _, b := range backends {
		if at := trainingKey + "." + backendsMark + shown(b.Name); len(b.Name) > len(of) &&
			(warningPath == at || strings.HasPrefix(warningPath, at+".")) {
			of = b.Name
		}
	}
	return of
}

const backendsMark = "backends."

// speaksOf keeps an entry that names a backend to that backend: what follows "backends." in it must be the whole name,
// so that backends.cluster does not pass over a warning about cluster2.
func (a acknowledgement) speaksOf(backend string) bool {
	_, rest, names := strings.Cut(a.text, backendsMark)
	if !names || rest == "" || backend == "" {
		return true
	}
	rest, whole := strings.CutPrefix(rest, backend)
	next, _ := utf8.DecodeRuneInString(rest)
	return whole && (rest == "" || !unicode.IsLetter(next) && !unicode.IsDigit(next) && next != '-' && next != '_')
}
