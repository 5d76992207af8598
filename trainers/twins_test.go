package trainers_test

import (
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"potato/api"
	"potato/trainers"
)

// enum is what a field of package api may hold, whose tag a test there holds to the constants.
func enum[T any](t *testing.T, field string) []string {
	t.Helper()
	f, ok := reflect.TypeFor[T]().FieldByName(field)
	if !ok {
		t.Fatalf("there is no field %s", field)
	}
	return strings.Split(f.Tag.Get("enum"), ",")
}

// inPython finds what a pattern's group matches in a file of the package.
func inPython(t *testing.T, file, pattern string) []string {
	t.Helper()
	text, err := fs.ReadFile(trainers.Files(), "potato_trainers/"+file)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		found = append(found, m[1])
	}
	if len(found) == 0 {
		t.Fatalf("%s matches nothing in %s", pattern, file)
	}
	return found
}

// Python and Go write the same words by hand: the kinds of schemes that a trainer may take.
func TestKindsAreThoseOfGo(t *testing.T) {
	listed := inPython(t, "registry.py", `(?m)^KINDS = \((.*)\)$`)[0]
	got := strings.Split(strings.ReplaceAll(listed, `"`, ""), ", ")
	want := slices.DeleteFunc(enum[api.Scheme](t, "Kind"), func(k string) bool { return k == string(api.KindUnsupported) })
	if !slices.Equal(got, want) {
		t.Errorf("registry.py has the kinds %v, Go %v", got, want)
	}
	for _, kind := range strings.Split(strings.ReplaceAll(inPython(t, "targets.py", `(?m)^CLASS_KINDS = \((.*)\)$`)[0], `"`, ""), ", ") {
		if !slices.Contains(want, kind) {
			t.Errorf("targets.py has the kind %s, which Go does not know", kind)
		}
	}
}

// The events that a worker writes are those that the agent reads; done is turned into a result before it is written.
func TestEventsAreThoseOfGo(t *testing.T) {
	known := append(enum[api.Event](t, "Event"), "done")
	for _, file := range []string{"events.py", "run.py"} {
		for _, event := range inPython(t, file, `"event": "(\w+)"`) {
			if !slices.Contains(known, event) {
				t.Errorf("%s writes the event %s, which Go does not know", file, event)
			}
		}
	}
}

// Splits are called the same on both sides.
func TestSplitsAreThoseOfGo(t *testing.T) {
	// Held out is what is neither of these: the study may call it as it likes.
	for _, names := range inPython(t, "bundle.py", `name not in \((.*?)\)`) {
		if want := `"` + api.SplitTrain + `", "` + api.SplitTest + `"`; names != want {
			t.Errorf("bundle.py holds out what is not in %s, Go what is not in %s", names, want)
		}
	}
	if name := inPython(t, "bundle.py", `name == "(\w+)"`)[0]; name != api.SplitUnlabeled {
		t.Errorf("bundle.py calls unlabelled items %s, Go %s", name, api.SplitUnlabeled)
	}
}
