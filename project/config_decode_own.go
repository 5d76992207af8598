package project

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"potato/api"
)

func (f *DataFile) decode(d *decoder, n *node, path string) {
	if n.kind != kindMap {
		if n.kind != kindText {
			d.wrongKind(n, path, "a path or a map with a path")
			return
		}
		n = &node{kind: kindMap, line: n.line, column: n.column, entries: []entry{{&node{kind: kindText, text: "path"}, n}}}
	}
	if n.get("path") == nil {
		d.fail(n, path+".path", "", "is missing")
	}
	d.decodeStruct(n, reflect.ValueOf(f).Elem(), path)
}

// decode reads a scheme. The annotation tool has dozens of types, and what a key holds depends on the type: only the
// keys that a type's labels are read from are held to their form, the others are taken when they have it.
func (s *Scheme) decode(d *decoder, n *node, path string) {
	judged := []string{"annotation_type", "name", "description"}
	switch t := n.get("annotation_type"); {
	case t == nil:
	case slices.Contains([]string{"radio", "select", "multiselect"}, t.text):
		judged = append(judged, "labels")
	case t.text == "likert":
		judged = append(judged, "labels", "size")
	}
	trial := &decoder{budget: d.budget}
	trial.decodeStruct(n, reflect.ValueOf(s).Elem(), path)
	d.budget = trial.budget
	d.warns = append(d.warns, trial.warns...)
	for _, p := range trial.errs {
		key, _, _ := strings.Cut(strings.TrimPrefix(p.Path, path+"."), "[")
		if n.kind != kindMap || d.budget < 0 || slices.Contains(judged, key) {
			d.errs = append(d.errs, p)
		}
	}
}

func (l *Label) decode(d *decoder, n *node, path string) {
	switch n.kind {
	case kindList:
		d.wrongKind(n, path, "text or a map with a name")
		return
	case kindMap:
		if n.get("name") == nil {
			d.fail(n, path+".name", "", "is missing")
			return
		}
	default:
		n = &node{kind: kindMap, line: n.line, column: n.column, entries: []entry{{&node{kind: kindText, text: "name"}, n}}}
	}
	d.decodeStruct(n, reflect.ValueOf(l).Elem(), path)
}

func (w *WarmWorker) decode(d *decoder, n *node, path string) {
	switch b, isBool := boolOf(n.text); {
	case n.kind == kindText && n.text == string(WarmWorkerAuto):
		*w = WarmWorkerAuto
	case scalarKind(n) == kindBool && isBool && !b:
		*w = WarmWorkerOff
	default:
		suggestion := ""
		if n.kind == kindText {
			suggestion = api.Suggest(n.text, []string{"auto", "false"})
		}
		d.fail(n, path, suggestion, "must be auto or false")
	}
}

var splitName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$`)

func (s *Splits) decode(d *decoder, n *node, path string) {
	if n.kind != kindMap {
		d.wrongKind(n, path, "a map of split names to shares")
		return
	}
	*s = nil
	var train float64
	for _, e := range n.entries {
		at, share := join(path, e.key.text), Split{Name: e.key.text}
		switch {
		case !d.nameable(e.key, path):
		case !splitName.MatchString(share.Name) || share.Name == "unlabeled" || share.Name == "media":
			d.fail(e.key, at, "", "cannot be the name of a split: it becomes a file of letters, digits, - and _, and not unlabeled")
		case e.value.kind == kindNull:
			d.fail(e.key, at, "", "has no share")
		default:
			d.decode(e.value, reflect.ValueOf(&share.Fraction).Elem(), at, `rule:"gte=0,lte=1000000000"`)
			*s = append(*s, share)
			if share.Name == "train" {
				train = share.Fraction
			}
		}
	}
	if train <= 0 {
		d.fail(n, path, "", "gives nothing to train: its share must be more than 0")
	}
}

func (m *MaxConcurrentRuns) decode(d *decoder, n *node, path string) {
	const rule = `rule:"gte=1,lte=1000"`
	if n.kind != kindMap {
		if scalarKind(n) != kindInt {
			d.wrongKind(n, path, "a whole number, or a map of backends to whole numbers")
			return
		}
		d.decode(n, reflect.ValueOf(&m.Total).Elem(), path, rule)
		return
	}
	m.Total, m.PerBackend = 0, map[string]int{}
	for _, e := range n.entries {
		if e.value.kind == kindNull || !d.nameable(e.key, path) {
			continue
		}
		places := 1
		d.decode(e.value, reflect.ValueOf(&places).Elem(), join(path, e.key.text), rule)
		m.PerBackend[e.key.text] = places
	}
}

func (b *Backends) decode(d *decoder, n *node, path string) {
	if n.kind != kindMap {
		d.wrongKind(n, path, "a map of names to backends")
		return
	}
	for _, e := range n.entries {
		if !d.nameable(e.key, path) {
			continue
		}
		x := Backend{Name: e.key.text}
		if problem := backendName(x.Name); problem != "" {
			d.fail(e.key, join(path, x.Name), "", "%s", problem)
		}
		x.read(d, e, join(path, x.Name))
		*b = append(*b, x)
	}
}

func backendName(name string) string {
	switch {
	case name == LocalBackend || name == "default":
		return "is not free: a backend may not be named " + name
	case name == "", len(name) > 100, strings.HasPrefix(name, "-"), strings.ContainsFunc(name, func(c rune) bool {
		return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !unicode.IsMark(c) && !strings.ContainsRune("-_.", c)
	}):
		return "cannot be the name of a backend: use letters, digits, -, _ and ."
	}
	return ""
}

// read decodes one backend. Which keys it may have depends on its type; without a type that is known, all are taken.
func (b *Backend) read(d *decoder, e entry, path string) {
	n := e.value
	if n.kind != kindNull && n.kind != kindMap {
		d.wrongKind(n, path, "a map of keys to values")
		return
	}
	if t := n.get("type"); t == nil {
		d.fail(e.key, path+".type", "", "is missing: ssh, slurm or agent")
	} else {
		field, _ := reflect.TypeFor[Backend]().FieldByName("Type")
		d.decode(t, reflect.ValueOf(&b.Type).Elem(), path+".type", field.Tag)
	}
	taken := &node{kind: kindMap, line: n.line, column: n.column}
	for _, x := range n.entries {
		types := typesOf(x.key.text)
		switch {
		case x.key.text == "type":
		case b.Type != "" && types != nil && !slices.Contains(types, b.Type):
			d.fail(x.key, join(path, x.key.text), "", "is a key of %s backends, not of %s backends%s",
				andList(types), b.Type, insteadOf(x.key.text, b.Type))
		default:
			taken.entries = append(taken.entries, x)
		}
	}
	for _, u := range d.decodeStruct(taken, reflect.ValueOf(b).Elem(), path) {
		d.unknownBackendKey(u, b.Type, path)
	}
	b.check(d, e, path)
}

// insteadOf says what a slurm backend has in the place of two keys that people bring from an ssh backend.
func insteadOf(key string, t api.BackendType) string {
	switch {
	case t == api.BackendSlurm && key == "gpus":
		return "; GPUs come from gres"
	case t == api.BackendSlurm && key == "packages":
		return "; point job_python at an environment that the compute nodes have"
	}
	return ""
}

// typesOf lists the types of backends that take a key, or nothing when it is no key at all.
func typesOf(key string) []api.BackendType {
	for f := range reflect.TypeFor[Backend]().Fields() {
		if f.Tag.Get("yaml") == key {
			var types []api.BackendType
			for t := range strings.SplitSeq(f.Tag.Get("on"), ",") {
				types = append(types, api.BackendType(t))
			}
			return types
		}
	}
	return nil
}

func andList(types []api.BackendType) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = string(t)
	}
	return strings.Join(words, " and ")
}

func (d *decoder) unknownBackendKey(u entry, t api.BackendType, path string) {
	var keys []string
	for _, key := range keysOf(reflect.TypeFor[Backend]()) {
		if t == "" || slices.Contains(typesOf(key), t) {
			keys = append(keys, key)
		}
	}
	what := "backends"
	if t != "" {
		what = string(t) + " backends"
	}
	d.fail(u.key, join(path, u.key.text), d.suggest(u.key.text, keys), "is not a key of %s", what)
}
