package project_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"potato/api"
	"potato/project"
)

// The scheduler's formats of a time, and which of them are long (V3).
func TestSlurmTime(t *testing.T) {
	for text, want := range map[string]string{
		"30": "30m0s", "360": "6h0m0s", "361": "6h1m0s long", "5:30": "5m30s", "360:00": "6h0m0s", "360:01": "6h0m1s long",
		"04:00:00": "4h0m0s", "6:00:00": "6h0m0s", "06:00:01": "6h0m1s long", "12:00:00": "12h0m0s long", "0-6": "6h0m0s",
		"0-7": "7h0m0s long", "1-0": "24h0m0s long", "2-12": "60h0m0s long", "3-0:00": "72h0m0s long", "0-5:59": "5h59m0s",
		"1-12:00:00": "36h0m0s long", "0-06:00:00": "6h0m0s", "UNLIMITED": "none long", "INFINITE": "none long", "unlimited": "none long",
		"0": "none long", "00:00:00": "none long",
		"": "refused", "4h": "refused", "1:2:3:4": "refused", "1-": "refused", "-1": "refused", "1-2-3": "refused", "1:": "refused",
		":30": "refused", "90.5": "refused", "INVALID": "refused", " 30": "refused", "1e3": "refused", "99999999999999999": "refused",
		"४": "refused",
	} {
		limit, unlimited, ok := project.SlurmTime(text)
		got := limit.String()
		if unlimited {
			got = "none"
		}
		if !ok {
			got = "refused"
		}
		_, r := project.Load(writeStudy(t, study+"model_training: {backends: {c: {type: slurm, host: h, remote_dir: /s, time: \""+text+"\"}}}\n"))
		if len(r.Warnings) > 0 {
			got += " long"
		}
		if got != want {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
		if ok != (len(r.Errors) == 0) {
			t.Errorf("%q: read: %v, errors %q", text, ok, found(r.Errors))
		}
	}
}

// The warning has the time as it is written, whatever YAML makes of it.
func TestLongTimeIsShownAsWritten(t *testing.T) {
	for written, shown := range map[string]string{
		"12:00:00": "12:00:00", `"12:00:00"`: "12:00:00", "'1-0'": "1-0", "720": "720", "010:00:00": "010:00:00", "UNLIMITED  # all night": "UNLIMITED",
		"&t 7:00:00": "7:00:00", "1-12": "1-12",
	} {
		_, r := project.Load(writeStudy(t, study+"model_training:\n  backends:\n    cluster:\n      type: slurm\n      host: h\n      remote_dir: /s\n      time: "+written+"\n"))
		want := "model_training.backends.cluster.time is " + shown +
			". A job that holds a GPU for more than 6 hours is long on a shared cluster; check its policy"
		if len(r.Warnings) != 1 || r.Warnings[0].Message != want {
			t.Errorf("%s: got %q, want %q", written, found(r.Warnings), want)
		}
	}
}

// What each list of entries acknowledges of the warnings about cluster and cluster2, and which warnings are then left (V4).
func TestAcknowledge(t *testing.T) {
	const config = study + `model_training:
  backends:
    cluster: {type: slurm, host: h, remote_dir: /s, time: 12:00:00}
    cluster2: {type: slurm, host: h, remote_dir: /s, time: 12:00:00}
    क्लस्टर.a: {type: slurm, host: h, remote_dir: /s, time: 12:00:00}
validation:
  acknowledge: `
	for entries, want := range map[string]struct{ acknowledged, left string }{
		`[]`: {"", "9 10 11"},
		`[model_training.backends.cluster.time is]`:     {"9", "10 11"},
		`[model_training.backends.cluster]`:             {"9", "10 11"},
		`[backends.cluster]`:                            {"9", "10 11"},
		`[backends.cluster2]`:                           {"10", "9 11"},
		`[model_training.backends.cluster2.time is]`:    {"10", "9 11"},
		`["model_training.backends.क्लस्टर.a.time is"]`: {"11", "9 10"},
		`["model_training.backends.क्लस्टर"]`:           {"", "9 10 11 13:matches no warning"},
		`[model_training.backends.]`:                    {"9 10 11", ""},
		`[model_training.backends.clust]`:               {"", "9 10 11 13:matches no warning"},
		`[check its policy]`:                            {"9 10 11", ""},
		`[Check its policy]`:                            {"", "9 10 11 13:matches no warning"},
		`[is 12:00:00.]`:                                {"9 10 11", ""},
		`[its policy]`:                                  {"", "9 10 11 13:is shorter than 12 characters"},
		`[backends.cluster.time is, backends.cluster2.time is, nothing like this]`: {"9 10", "11 13:matches no warning"},
		`[3]`:                {"", "9 10 11 13:must be text"},
		`check its policy`:   {"", "9 10 11 13:must be a list"},
		"\n  acknowledg: []": {"", "9 10 11 14:is not a key of validation"},
	} {
		r := project.Validate(writeStudy(t, config+entries+"\n"))
		var acknowledged, left []string
		for _, p := range r.Acknowledged {
			acknowledged = append(acknowledged, fmt.Sprint(p.Line))
		}
		for _, p := range r.Warnings {
			s := fmt.Sprint(p.Line)
			for _, text := range []string{"matches no warning", "is shorter than 12 characters", "must be text", "must be a list", "is not a key of validation"} {
				if strings.Contains(p.Message, text) {
					s += ":" + text
				}
			}
			left = append(left, s)
		}
		if got := strings.Join(acknowledged, " "); got != want.acknowledged {
			t.Errorf("%s acknowledges %q, want %q", entries, got, want.acknowledged)
		}
		if got := strings.Join(left, " "); got != want.left {
			t.Errorf("%s leaves %q, want %q", entries, got, want.left)
		}
		if r.OK(true) != (want.left == "") || !r.OK(false) {
			t.Errorf("%s: passes strictly: %v, otherwise: %v", entries, r.OK(true), r.OK(false))
		}
	}
}

// Only validate reads the block: a start warns all the same, and refuses for nothing in it (V4).
func TestStartDoesNotReadAcknowledge(t *testing.T) {
	path := writeStudy(t, study+"validation: {acknowledge: [model_training.backends.c.time is, short, 3], foo: 1}\n"+
		"model_training: {backends: {c: {type: slurm, host: h, remote_dir: /s, time: 12:00:00}}}\n")
	c, r := project.Load(path)
	if c == nil || len(r.Acknowledged) > 0 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Message, "time is 12:00:00") {
		t.Errorf("start: errors %q, warnings %q, acknowledged %q", found(r.Errors), found(r.Warnings), found(r.Acknowledged))
	}
	v := project.Validate(path)
	if got := found(v.Acknowledged); len(got) != 1 || len(v.Warnings) != 3 {
		t.Errorf("validate: warnings %q, acknowledged %q", found(v.Warnings), got)
	}
	if !slices.IsSortedFunc(v.Warnings, func(a, b api.Problem) int { return a.Line - b.Line }) {
		t.Errorf("the warnings are not in the order of the file: %q", found(v.Warnings))
	}
}
