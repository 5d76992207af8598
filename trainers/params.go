package trainers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"potato/api"
)

// ValidateParams checks parameters against a trainer's JSON Schema, so that a run that could only fail is never started.
// It knows the part of JSON Schema that trainers use; the worker checks the same before it trains, and
// testdata/params.json holds both to the same answers.
func ValidateParams(schema, params map[string]any) []api.Problem {
	properties, _ := schema["properties"].(map[string]any)
	var problems []api.Problem
	for _, name := range slices.Sorted(maps.Keys(params)) {
		rule, known := properties[name].(map[string]any)
		if !known {
			if schema["additionalProperties"] == false {
				suggestion := api.Suggest(name, slices.Collect(maps.Keys(properties)))
				problems = append(problems, api.Problem{
					Path: "params." + name, Message: fmt.Sprintf("there is no parameter '%s'", name), Suggestion: suggestion,
				})
			}
			continue
		}
		if wrong := checkValue(rule, params[name]); wrong != "" {
			problems = append(problems, api.Problem{Path: "params." + name, Message: name + " " + wrong})
		}
	}
	required := texts(schema["required"])
	slices.Sort(required)
	for _, name := range required {
		rule, _ := properties[name].(map[string]any)
		_, given := params[name]
		if _, defaulted := rule["default"]; !given && !defaulted {
			problems = append(problems, api.Problem{Path: "params." + name, Message: name + " is missing"})
		}
	}
	return problems
}

// checkValue returns what is wrong with a value, as the end of a sentence; empty when nothing is.
func checkValue(rule map[string]any, value any) string {
	if types := texts(rule["type"]); len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return is(t, value) }) {
		for i, t := range types {
			types[i] = typeWords[t]
		}
		return "must be " + strings.Join(types, " or ")
	}
	if enum, ok := rule["enum"].([]any); ok && !slices.ContainsFunc(enum, func(e any) bool { return equal(e, value) }) {
		var words []string
		for _, e := range enum {
			words = append(words, fmt.Sprint(e))
		}
		return "must be one of " + strings.Join(words, ", ")
	}
	if n, ok := number(value); ok {
		for _, b := range bounds {
			if limit, ok := number(rule[b.key]); ok && b.broken(n, limit) {
				return "must be " + b.words + " " + strconv.FormatFloat(limit, 'f', -1, 64)
			}
		}
	}
	if list, ok := value.([]any); ok {
		items, _ := rule["items"].(map[string]any)
		for _, item := range list {
			if wrong := checkValue(items, item); wrong != "" {
				return "has an item that " + wrong
			}
		}
	}
	return ""
}

var typeWords = map[string]string{
	"string": "a text", "number": "a number", "integer": "a whole number", "boolean": "true or false",
	"array": "a list", "object": "an object", "null": "null",
}

var bounds = []struct {
	key, words string
	broken     func(n, limit float64) bool
}{
	{"minimum", "at least", func(n, limit float64) bool { return n < limit }},
	{"exclusiveMinimum", "more than", func(n, limit float64) bool { return n <= limit }},
	{"maximum", "at most", func(n, limit float64) bool { return n > limit }},
	{"exclusiveMaximum", "less than", func(n, limit float64) bool { return n >= limit }},
}

func is(kind string, value any) bool {
	n, numeric := number(value)
	switch kind {
	case "number":
		return numeric
	case "integer":
		return numeric && n == math.Trunc(n) && !math.IsInf(n, 0)
	case "null":
		return value == nil
	}
	switch value.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}

// number reads the ways in which a decoded document holds numbers: JSON's, and YAML's integers.
func number(value any) (float64, bool) {
	switch n := value.(type) {
	case float64:
		return n, true
	case int:
		return float64(n), true
	case int64:
		return float64(n), true
	case uint64:
		return float64(n), true
	case json.Number:
		f, err := n.Float64()
		return f, err == nil
	}
	return 0, false
}

func equal(a, b any) bool {
	x, numeric := number(a)
	y, both := number(b)
	if numeric || both {
		return numeric && both && x == y
	}
	switch a.(type) {
	case string, bool, nil:
		return a == b
	}
	return false // an enum of lists or objects: no trainer has one
}

// texts reads a JSON text or list of texts.
func texts(value any) []string {
	switch v := value.(type) {
	case string:
		return []string{v}
	case []any:
		var list []string
		for _, each := range v {
			if s, ok := each.(string); ok {
				list = append(list, s)
			}
		}
		return list
	}
	return nil
}
