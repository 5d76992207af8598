package project

import (
	"math"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"potato/api/pyjson"
)

// pythonText is a scalar as Python's str() writes it, which is what the annotation tool puts into annotators' files.
func pythonText(n *node) string {
	switch n.kind {
	case kindBool:
		if b, _ := boolOf(n.text); b {
			return "True"
		}
		return "False"
	case kindInt:
		if i, ok := intOf(n.text); ok {
			return strconv.FormatInt(i, 10)
		}
	case kindFloat:
		if f, ok := floatOf(n.text); ok {
			return pyjson.FloatRepr(f)
		}
	}
	return n.text
}

// decodeMap fills a map whose keys are the user's own: an environment, or a trainer's parameters.
func (d *decoder) decodeMap(n *node, v reflect.Value, path string) {
	if n.kind != kindMap {
		d.wrongKind(n, path, "a map of keys to values")
		return
	}
	switch m := v.Addr().Interface().(type) {
	case *map[string]Text:
		*m = d.environment(n, path)
	case *map[string]any:
		*m = d.freeMap(n, path)
	default:
		panic("no decoder for " + v.Type().String()) // A field of ours without one: every test of Load meets it.
	}
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (d *decoder) environment(n *node, path string) map[string]Text {
	env := map[string]Text{}
	for _, e := range n.entries {
		at := join(path, e.key.text)
		switch {
		case !d.nameable(e.key, path):
		case !envName.MatchString(e.key.text):
			d.fail(e.key, at, "", "is not a name of an environment variable: letters, digits and _, not beginning with a digit")
		case e.value.kind == kindNull:
		case e.value.kind == kindList || e.value.kind == kindMap:
			d.wrongKind(e.value, at, "text")
		case strings.ContainsRune(e.value.text, 0):
			d.fail(e.value, at, "", "must not contain a NUL character")
		default:
			env[e.key.text] = Text(e.value.text)
		}
	}
	return env
}

// nameable refuses a key that a YAML 1.1 reader takes for something else than a name.
func (d *decoder) nameable(key *node, path string) bool {
	switch key.kind {
	case kindText, kindInt:
		return true
	case kindBool, kindNull, kindDate, kindFloat:
		d.fail(key, path, "", "has the key %s, which YAML reads as %s; put it in quotes", shown(key.text), key.kind.noun())
	}
	return false
}

func (d *decoder) freeMap(n *node, path string) map[string]any {
	m := map[string]any{}
	for _, e := range n.entries {
		if d.nameable(e.key, path) {
			m[e.key.text] = d.free(e.value, join(path, e.key.text))
		}
	}
	return m
}

// free reads a value of a trainer's parameters, which the trainer checks. It must fit into JSON.
func (d *decoder) free(n *node, path string) any {
	if !d.afford(n, path) {
		return nil
	}
	switch k := scalarKind(n); k {
	case kindNull:
		return nil
	case kindBool:
		b, _ := boolOf(n.text) // The kind says that it is one.
		return b
	case kindInt:
		if i, ok := intOf(n.text); ok {
			return i
		}
		d.fail(n, path, "", "is out of range")
		return nil
	case kindFloat:
		f, ok := floatOf(n.text)
		if !ok || math.IsNaN(f) || math.IsInf(f, 0) {
			d.fail(n, path, "", "must be a number")
			return nil
		}
		return f
	case kindList:
		list := make([]any, 0, len(n.list))
		for i, item := range n.list {
			list = append(list, d.free(item, path+"["+strconv.Itoa(i)+"]"))
		}
		return list
	case kindMap:
		return d.freeMap(n, path)
	}
	return n.text
}
