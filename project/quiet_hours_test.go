package project_test

import (
	"testing"
	"time"

	"potato/project"
)

func TestQuietHours(t *testing.T) {
	cases := []struct {
		hours, at, until string
		quiet            bool
	}{
		{"22:00-06:00", "21:59", "06:00", false},
		{"22:00-06:00", "22:00", "06:00", true},
		{"22:00-06:00", "05:59", "06:00", true},
		{"22:00-06:00", "06:00", "06:00", false},
		{"9:30 - 17:00", "09:30", "17:00", true}, // as the config's rule lets it pass
		{"9:30 - 17:00", "17:00", "17:00", false},
		{"", "12:00", "", false},
		{"noon-midnight", "12:00", "", false},
	}
	for _, c := range cases {
		at, err := time.Parse("15:04", c.at)
		if err != nil {
			t.Fatal(err)
		}
		if until, quiet := project.QuietUntil(c.hours, at); until != c.until || quiet != c.quiet {
			t.Errorf("%q at %s: got %q, %v, want %q, %v", c.hours, c.at, until, quiet, c.until, c.quiet)
		}
	}
}
