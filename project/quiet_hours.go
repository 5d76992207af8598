package project

import (
	"regexp"
	"strings"
	"time"
)

var hoursForm = regexp.MustCompile(`^([01]?[0-9]|2[0-3]):([0-5][0-9]) *- *([01]?[0-9]|2[0-3]):([0-5][0-9])$`)

func quietHoursRule(s string) string {
	m := hoursForm.FindStringSubmatch(s)
	if m == nil {
		return "must be two times of the day such as 22:00-06:00"
	}
	if m[1] == m[3] && m[2] == m[4] {
		return "begins and ends at the same time"
	}
	return ""
}

// QuietUntil reports whether a moment lies in the quiet hours of auto-retrain, and when they end. Hours that are not of
// the form that the config's rule lets pass, and none, are never quiet.
func QuietUntil(hours string, at time.Time) (until string, quiet bool) {
	from, to, ok := strings.Cut(hours, "-")
	if !ok {
		return "", false
	}
	from, to = strings.TrimSpace(from), strings.TrimSpace(to)
	begin, err1 := time.Parse("15:04", from)
	end, err2 := time.Parse("15:04", to)
	if err1 != nil || err2 != nil {
		return "", false
	}
	minutes := func(t time.Time) int { return t.Hour()*60 + t.Minute() }
	now, b, e := minutes(at), minutes(begin), minutes(end)
	if b <= e {
		quiet = now >= b && now < e
	} else {
		quiet = now >= b || now < e
	}
	return to, quiet
}
