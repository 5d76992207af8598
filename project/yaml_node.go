package project

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v4"

	"potato/api"
)

// knownTag tells whether PyYAML's safe reader knows a tag.
func knownTag(tag string) bool {
	return slices.Contains([]string{"!", "!!null", "!!bool", "!!int", "!!float", "!!str", "!!seq", "!!map", "!!binary",
		"!!timestamp", "!!omap", "!!pairs", "!!set", "!!merge"}, tag)
}

// envForm is what the annotation tool replaces: a value that is nothing but ${NAME}. The rest of a text is left alone.
var envForm = regexp.MustCompile(`^\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

func (r *reader) readScalar(n *node, y *yaml.Node) {
	n.text, n.kind = y.Value, kindText
	n.plain = y.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
	switch {
	case y.Style&yaml.TaggedStyle != 0:
		switch y.Tag {
		case "!!null":
			n.kind = kindNull
		case "!!bool", "!!int", "!!float", "!!timestamp":
			n.kind = plainKind(y.Value)
		}
	case n.plain:
		n.kind = plainKind(y.Value)
	}
	m := envForm.FindStringSubmatch(n.text)
	if m == nil || n.kind != kindText {
		return
	}
	if value, ok := os.LookupEnv(m[1]); ok {
		n.text, n.env = value, true
	} else {
		n.unset = m[1]
	}
}

// readMap reads keys and values. Merge keys come first, so that the map's own keys win over them; of a key given twice
// the last counts, as in the annotation tool.
func (r *reader) readMap(n *node, y *yaml.Node) {
	at := map[string]int{} // index of each key in n.entries
	put := func(e entry) {
		if i, ok := at[e.key.id()]; ok {
			n.entries[i] = e
			return
		}
		at[e.key.id()] = len(n.entries)
		n.entries = append(n.entries, e)
	}
	for i := 0; i+1 < len(y.Content); i += 2 {
		if isMerge(y.Content[i]) {
			for _, e := range r.merged(y.Content[i], y.Content[i+1]) {
				if _, earlier := at[e.key.id()]; !earlier {
					put(e)
				}
			}
		}
	}
	own := map[string]int{} // line of each key that is not merged in
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		if isMerge(k) {
			continue
		}
		key, value := r.read(k), r.read(y.Content[i+1])
		if key.kind == kindList || key.kind == kindMap {
			r.fail(k, "A key is "+key.kind.noun()+"; it must be text")
			continue
		}
		if line, twice := own[key.id()]; twice {
			r.warns = append(r.warns, api.Problem{Path: shown(key.text), Line: key.line, Column: key.column,
				Message: fmt.Sprintf("%s is given twice, in line %d and in line %d; the last one counts", shown(key.text), line, key.line)})
		}
		own[key.id()] = key.line
		put(entry{key, value})
	}
}

func isMerge(k *yaml.Node) bool {
	return k.Kind == yaml.ScalarNode && k.Value == "<<" &&
		k.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) == 0
}

// merged lists the entries that a merge key brings in. Of maps that have the same key the first wins.
func (r *reader) merged(key, value *yaml.Node) []entry {
	n := r.read(value)
	maps := []*node{n}
	if n.kind == kindList {
		maps = n.list
	}
	var entries []entry
	for _, m := range maps {
		if m.kind != kindMap {
			r.fail(key, "The merge key << takes a map or a list of maps; it is given "+m.kind.noun())
			return nil
		}
		if r.nodes += len(m.entries); r.nodes > maxConfigNodes {
			return nil
		}
		entries = append(entries, m.entries...)
	}
	return entries
}

// shown makes a key or name fit for an error: short, harmless to a terminal, and without what follows a : or =, which
// may be a secret whose colon lacks its blank.
func shown(s string) string {
	if i := strings.IndexAny(s, ":="); i >= 0 {
		s = s[:i] + "…"
	}
	return harmless(s)
}

// harmless is a text without control characters, and not long.
func harmless(s string) string {
	r := []rune(printable(s))
	if len(r) > 60 {
		return string(r[:60]) + "…"
	}
	return string(r)
}

// printable is a text without control characters, those that turn the direction of writing included.
func printable(s string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c >= 0x2028 && c <= 0x202e || c >= 0x2066 && c <= 0x2069 {
			return unicode.ReplacementChar
		}
		return c
	}, s)
}
