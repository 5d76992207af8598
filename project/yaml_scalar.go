package project

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// kind is what a node of the config is to a YAML 1.1 reader, which is what the annotation tool reads it with.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindText
	kindDate
	kindList
	kindMap
)

// noun names a kind in an error: the value itself stays out, it may be a secret.
func (k kind) noun() string {
	return [...]string{"nothing", "true or false", "a whole number", "a number", "text", "a date", "a list", "a map"}[k]
}

// The implicit types of plain scalars, as YAML 1.1 and PyYAML have them: 1e3 is text for want of a point, 010 is 8,
// 12:00:00 is 43200.
var (
	intForm   = regexp.MustCompile(`^[-+]?(0b[0-1_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*|[1-9][0-9_]*(:[0-5]?[0-9])+)$`)
	floatForm = regexp.MustCompile(`^([-+]?([0-9][0-9_]*)\.[0-9_]*([eE][-+][0-9]+)?|\.[0-9][0-9_]*([eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$`)
	dateForm  = regexp.MustCompile(`^([0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(\.[0-9]*)?([ \t]*(Z|[-+][0-9]{1,2}(:?[0-9]{2})?))?)$`)
)

// plainKind tells the type of a scalar that is written without quotes.
func plainKind(s string) kind {
	switch s {
	case "", "~", "null", "Null", "NULL":
		return kindNull
	}
	if _, ok := boolOf(s); ok {
		return kindBool
	}
	switch {
	case !strings.ContainsRune("+-.0123456789", rune(s[0])):
		return kindText
	case intForm.MatchString(s):
		return kindInt
	case floatForm.MatchString(s):
		return kindFloat
	case dateForm.MatchString(s):
		return kindDate
	}
	return kindText
}

func boolOf(s string) (value, ok bool) {
	switch s {
	case "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON":
		return true, true
	case "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF":
		return false, true
	}
	return false, false
}

// intOf reads a scalar of kindInt; ok is false when it does not fit.
func intOf(s string) (n int64, ok bool) {
	s = strings.ReplaceAll(s, "_", "")
	sign, digits := "", s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, digits = strings.TrimPrefix(s[:1], "+"), s[1:]
	}
	var err error
	switch {
	case strings.Contains(digits, ":"):
		f := sexagesimal(digits)
		if f >= math.MaxInt64 {
			return 0, false
		}
		n = int64(f)
		if sign == "-" {
			n = -n
		}
	case strings.HasPrefix(digits, "0b"):
		n, err = strconv.ParseInt(sign+digits[2:], 2, 64)
	case strings.HasPrefix(digits, "0x"):
		n, err = strconv.ParseInt(sign+digits[2:], 16, 64)
	case len(digits) > 1 && digits[0] == '0':
		n, err = strconv.ParseInt(sign+digits, 8, 64)
	default:
		n, err = strconv.ParseInt(sign+digits, 10, 64)
	}
	return n, err == nil
}

// floatOf reads a scalar of kindInt or kindFloat.
func floatOf(s string) (f float64, ok bool) {
	if intForm.MatchString(s) {
		n, ok := intOf(s)
		return float64(n), ok
	}
	s = strings.ToLower(strings.ReplaceAll(s, "_", ""))
	sign, digits := 1.0, strings.TrimLeft(s, "+-")
	if strings.HasPrefix(s, "-") {
		sign = -1
	}
	switch {
	case digits == ".inf":
		return sign * math.Inf(1), true
	case digits == ".nan":
		return math.NaN(), true
	case strings.Contains(digits, ":"):
		return sign * sexagesimal(digits), true
	}
	f, err := strconv.ParseFloat(digits, 64)
	return sign * f, err == nil
}

// sexagesimal reads 1:30 as 90.
func sexagesimal(s string) float64 {
	var total float64
	for part := range strings.SplitSeq(s, ":") {
		f, _ := strconv.ParseFloat(part, 64) // The form was matched: only digits and a last point are left.
		total = total*60 + f
	}
	return total
}
