package project

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"potato/api"
)

// decoder fills the config's types from nodes, by their tags, and collects everything that is wrong.
type decoder struct {
	errs, warns []api.Problem
	budget      int // values that may still be read: aliases can make a small file large
}

// decodesItself is a type whose form in the config is not that of its fields.
type decodesItself interface {
	decode(d *decoder, n *node, path string)
}

func (d *decoder) fail(n *node, path, suggestion, format string, args ...any) {
	d.errs = append(d.errs, problemAt(n, path, suggestion, path+" "+fmt.Sprintf(format, args...)))
}

func (d *decoder) warn(n *node, path, suggestion, format string, args ...any) {
	d.warns = append(d.warns, problemAt(n, path, suggestion, path+" "+fmt.Sprintf(format, args...)))
}

func problemAt(n *node, path, suggestion, message string) api.Problem {
	p := api.Problem{Path: path, Line: 1, Column: 1, Message: message, Suggestion: suggestion}
	if n != nil {
		p.Line, p.Column = n.line, n.column
	}
	return p
}

// afford tells whether one more value may be read.
func (d *decoder) afford(n *node, path string) bool {
	d.budget--
	if d.budget == -1 {
		d.fail(n, path, "", "grows beyond all measure when its aliases are followed")
	}
	return d.budget >= 0
}

// suggest is api.Suggest, as long as there are few enough problems for it to be read.
func (d *decoder) suggest(word string, candidates []string) string {
	if len(d.errs)+len(d.warns) > 200 {
		return ""
	}
	return api.Suggest(word, candidates)
}

func (d *decoder) wrongKind(n *node, path, want string) {
	d.fail(n, path, "", "must be %s, not %s", want, n.kind.noun())
}

// decodeStruct fills the fields whose keys are there and sets the defaults of the others. Keys that are no field's are
// returned: what they mean depends on where they stand.
func (d *decoder) decodeStruct(n *node, v reflect.Value, path string) (unknown []entry) {
	fields := map[string]reflect.StructField{}
	for f := range v.Type().Fields() {
		key := f.Tag.Get("yaml")
		if key == "-" || key == "" {
			continue
		}
		fields[key] = f
		if text, ok := f.Tag.Lookup("default"); ok {
			d.setDefault(v.FieldByIndex(f.Index), text)
		} else if f.Type.Kind() == reflect.Struct {
			d.decodeStruct(nil, v.FieldByIndex(f.Index), "") // A block that is absent has defaults, too.
		}
	}
	if n == nil {
		return nil
	}
	if n.kind != kindMap {
		d.wrongKind(n, path, "a map of keys to values")
		return nil
	}
	for _, e := range n.entries {
		f, ok := fields[e.key.text]
		if !ok {
			unknown = append(unknown, e)
			continue
		}
		if e.value.kind != kindNull {
			d.decode(e.value, v.FieldByIndex(f.Index), join(path, e.key.text), f.Tag)
		}
	}
	return unknown
}

func (d *decoder) setDefault(v reflect.Value, text string) {
	n, errs, _ := parseYAML([]byte("default: " + text))
	if len(errs) == 0 {
		d.decode(n.entries[0].value, v, "default", "")
	}
}

func join(path, key string) string {
	if path == "" {
		return shown(key)
	}
	return path + "." + shown(key)
}

// decode fills one field.
func (d *decoder) decode(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	if !d.afford(n, path) {
		return
	}
	if n.unset != "" {
		d.warn(n, path, "", "refers to the environment variable %s, which is not set; the text is taken as it is", n.unset)
	}
	if self, ok := v.Addr().Interface().(decodesItself); ok {
		self.decode(d, n, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.decode(n, v.Elem(), path, tag)
	case reflect.Struct:
		for _, e := range d.decodeStruct(n, v, path) {
			d.unknownKey(e, v.Type(), path)
		}
	case reflect.Slice:
		d.decodeList(n, v, path, tag)
	case reflect.Map:
		d.decodeMap(n, v, path)
	case reflect.String:
		d.decodeString(n, v, path, tag)
	case reflect.Bool:
		d.decodeBool(n, v, path, tag)
	case reflect.Int, reflect.Int64:
		d.decodeInt(n, v, path, tag)
	case reflect.Float64:
		d.decodeFloat(n, v, path, tag)
	default:
		panic("no decoder for " + v.Type().String()) // A field of ours without one: every test of Load meets it.
	}
}

// unknownKey refuses a key of model_training that is none. Elsewhere the annotation tool's keys are not ours to judge.
func (d *decoder) unknownKey(e entry, t reflect.Type, path string) {
	if path != trainingKey && !strings.HasPrefix(path, trainingKey+".") {
		return
	}
	d.fail(e.key, join(path, e.key.text), d.suggest(e.key.text, keysOf(t)), "is not a key of %s", path)
}

const trainingKey = "model_training"

func keysOf(t reflect.Type) []string {
	var keys []string
	for f := range t.Fields() {
		if key := f.Tag.Get("yaml"); key != "-" && key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

func (d *decoder) decodeList(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	if n.kind != kindList {
		d.wrongKind(n, path, "a list")
		return
	}
	for i, item := range n.list {
		at := path + "[" + strconv.Itoa(i) + "]"
		if item.kind == kindNull {
			d.fail(item, at, "", "is empty")
			continue
		}
		x := reflect.New(v.Type().Elem()).Elem()
		d.decode(item, x, at, tag)
		v.Set(reflect.Append(v, x))
	}
}

// scalarKind is the kind of a value for a field that is no text: what an environment variable holds is read as if it
// stood there without quotes.
func scalarKind(n *node) kind {
	if n.env {
		return plainKind(n.text)
	}
	return n.kind
}

func (d *decoder) decodeString(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	s := n.text
	switch {
	case n.kind == kindText:
	case n.kind == kindList || n.kind == kindMap:
		d.wrongKind(n, path, "text")
		return
	case v.Type() == reflect.TypeFor[Text]():
	case tag.Get("accept") == "scalar":
		s = pythonText(n)
	default:
		d.wrongKind(n, path, "text")
		return
	}
	if problem, suggestion := checkText(tag.Get("rule"), s); problem != "" {
		d.fail(n, path, suggestion, "%s", problem)
		return
	}
	v.SetString(s)
}

func (d *decoder) decodeBool(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	if tag.Get("accept") == "truthy" && scalarKind(n) != kindBool {
		v.SetBool(n.text != "" && n.text != "0" || len(n.list)+len(n.entries) > 0)
		return
	}
	if scalarKind(n) != kindBool {
		d.wrongKind(n, path, "true or false")
		return
	}
	b, _ := boolOf(n.text) // The kind says that it is one.
	v.SetBool(b)
}

func (d *decoder) decodeInt(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	if scalarKind(n) != kindInt {
		d.wrongKind(n, path, "a whole number")
		return
	}
	i, ok := intOf(n.text)
	if !ok || v.OverflowInt(i) {
		d.fail(n, path, "", "is out of range")
		return
	}
	if problem := checkNumber(tag.Get("rule"), float64(i)); problem != "" {
		d.fail(n, path, "", "%s", problem)
		return
	}
	v.SetInt(i)
}

func (d *decoder) decodeFloat(n *node, v reflect.Value, path string, tag reflect.StructTag) {
	if k := scalarKind(n); k != kindInt && k != kindFloat {
		d.wrongKind(n, path, "a number")
		return
	}
	f, ok := floatOf(n.text)
	if !ok {
		f = math.Inf(1)
	}
	if problem := checkNumber(tag.Get("rule"), f); problem != "" {
		d.fail(n, path, "", "%s", problem)
		return
	}
	v.SetFloat(f)
}
