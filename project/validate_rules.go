package project

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"potato/api"
)

// textRules are the rules of texts by name. Each says what is wrong, or nothing. None of them repeats the value.
var textRules = map[string]func(string) string{
	"line":        lineRule,
	"flag":        lineRule,
	"host":        hostRule,
	"login":       loginRule,
	"device":      form(`^(auto|cpu|mps|cuda|cuda:[0-9]{1,3})$`, "must be auto, cpu, mps, cuda or cuda:N with the GPU's number"),
	"gpus":        gpusRule,
	"nodes":       form(`^[1-9][0-9]*[kKmM]?([-,:][0-9]+[kKmM]?)*$`, "must be a number of nodes, or least-most such as 1-2"),
	"memory":      form(`^[0-9]+([kKmMgGtT][bB]?)?$`, "must be a number with a unit such as 32G"),
	"slurm_time":  timeRule,
	"quiet_hours": quietHoursRule,
}

// checkText applies a field's rule to a text: what is wrong with it, and which word was probably meant.
func checkText(rule, s string) (problem, suggestion string) {
	if list, ok := strings.CutPrefix(rule, "oneof="); ok {
		words := strings.Fields(list)
		for _, w := range words {
			if s == w {
				return "", ""
			}
		}
		return "must be " + orList(words), api.Suggest(s, words)
	}
	if rule == "" {
		return "", ""
	}
	problem = textRules[rule](s)
	if problem != "" && rule == "device" {
		suggestion = api.Suggest(s, []string{"auto", "cpu", "mps", "cuda"})
	}
	return problem, suggestion
}

// checkNumber applies the bounds gt=, gte= and lte= to a number.
func checkNumber(rule string, x float64) string {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return "must be a number"
	}
	for part := range strings.SplitSeq(rule, ",") {
		op, limit, _ := strings.Cut(part, "=")
		bound, _ := strconv.ParseFloat(limit, 64) // The rules are ours; a test reads every one.
		switch {
		case op == "gt" && x <= bound:
			return "must be more than " + limit
		case op == "gte" && x < bound:
			return "must be " + limit + " or more"
		case op == "lte" && x > bound:
			return "must be " + limit + " or less"
		}
	}
	return ""
}

func form(pattern, problem string) func(string) string {
	re := regexp.MustCompile(pattern)
	return func(s string) string {
		if re.MatchString(s) {
			return ""
		}
		return problem
	}
}

func lineRule(s string) string {
	switch {
	case strings.TrimSpace(s) == "":
		return "is empty"
	case strings.ContainsFunc(s, unicode.IsControl):
		return "must be one line without control characters"
	}
	return ""
}

// hostRule keeps a host from being taken for an option of ssh, or for several arguments.
func hostRule(s string) string {
	switch {
	case lineRule(s) != "":
		return lineRule(s)
	case strings.ContainsFunc(s, unicode.IsSpace):
		return "must not contain blanks"
	case strings.HasPrefix(s, "-"):
		return "must not begin with -"
	}
	return ""
}

func loginRule(s string) string {
	if problem := hostRule(s); problem != "" {
		return problem
	}
	if strings.Contains(s, "@") {
		return "is the account alone, without @ and host"
	}
	return ""
}

var gpuList = regexp.MustCompile(`^[0-9]{1,3}( *, *[0-9]{1,3})*$`)

func gpusRule(s string) string {
	if s == "auto" || s == "none" {
		return ""
	}
	if !gpuList.MatchString(s) {
		return `must be auto, none, or GPU numbers such as "0" or "0,1"`
	}
	seen := map[int]bool{}
	for part := range strings.SplitSeq(s, ",") {
		n, _ := strconv.Atoi(strings.TrimSpace(part)) // The form was matched.
		if seen[n] {
			return "names GPU " + strconv.Itoa(n) + " twice"
		}
		seen[n] = true
	}
	return ""
}

// orList joins words for a sentence: a, b or c.
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}
