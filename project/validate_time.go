package project

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// longJob is the time over which a job that holds a GPU is long on a shared cluster (V3).
const longJob = 6 * time.Hour

var slurmTimeForm = regexp.MustCompile(`^(?:(\d+)-(\d+)(?::(\d+))?(?::(\d+))?|(\d+)(?::(\d+))?(?::(\d+))?)$`)

// SlurmTime reads a time limit as the scheduler does: MM, MM:SS, HH:MM:SS, D-HH, D-HH:MM, D-HH:MM:SS, UNLIMITED or
// INFINITE. A limit of zero is none either. ok is false when the text is none of these.
func SlurmTime(s string) (limit time.Duration, unlimited, ok bool) {
	switch strings.ToUpper(s) {
	case "UNLIMITED", "INFINITE":
		return 0, true, true
	}
	m := slurmTimeForm.FindStringSubmatch(s)
	if m == nil {
		return 0, false, false
	}
	var n [8]float64
	for i := 1; i < len(m); i++ {
		n[i], _ = strconv.ParseFloat(m[i], 64) // An absent part is 0, and the form was matched.
	}
	var seconds float64
	switch {
	case m[1] != "":
		seconds = n[1]*86400 + n[2]*3600 + n[3]*60 + n[4]
	case m[7] != "":
		seconds = n[5]*3600 + n[6]*60 + n[7]
	default:
		seconds = n[5]*60 + n[6]
	}
	const longest = 100 * 365 * 86400 // Beyond any cluster, and short of what a Duration holds.
	if seconds > longest {
		return 0, false, false
	}
	return time.Duration(seconds) * time.Second, seconds == 0, true
}

func timeRule(s string) string {
	if _, _, ok := SlurmTime(s); !ok {
		return "must be a time such as 30 (minutes), 04:00:00 or 1-12:00:00, or UNLIMITED"
	}
	return ""
}

// holdsLong tells whether a job with this time is one to warn of.
func holdsLong(s string) bool {
	limit, unlimited, ok := SlurmTime(s)
	return ok && (unlimited || limit > longJob)
}
