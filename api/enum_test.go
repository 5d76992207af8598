package api_test

import (
	"go/ast"
	"go/parser"
	source "go/token"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"potato/api"
	"potato/supervisor"
)

// texts are the fields with an enum whose type is string, and where their values come from.
var texts = map[string][]string{
	"Artifact.Where":              {"server", "host"},
	"PredictionRow.Split":         {api.SplitVal, api.SplitTest, api.SplitUnlabeled},
	"Trainer.Source":              {"built-in", "study"},
	"createRunInput.Client":       {string(api.TriggerPage), string(api.TriggerAPI)},
	"getRunLogInput.Source":       {string(supervisor.LogEvents), string(supervisor.LogStdout), string(supervisor.LogStderr), string(supervisor.LogAgent)},
	"health.Status":               {"ok"},
	"listPredictionsInput.Format": {"json", "ndjson", "csv"},
	"listPredictionsInput.Split":  {api.SplitVal, api.SplitTest, api.SplitUnlabeled},
	"listRunsInput.Sort":          {"-created_at", "created_at", "-score", "score", "-duration", "duration"},
	"listRunsInput.Status":        statuses(),
	"Status.State":                append([]string{"idle"}, statuses()...),
}

func statuses() []string {
	var all []string
	for _, s := range api.RunStatuses() {
		all = append(all, string(s))
	}
	return all
}

// An enum tag is what the document says; it must be what Go says. A field of a type with constants lists all of them.
func TestEnumsAreTheConstants(t *testing.T) {
	constants, enums := map[string][]string{}, map[string][2]string{} // field → its type and its tag
	for _, dir := range []string{".", "../handlers"} {
		packages, err := parser.ParseDir(source.NewFileSet(), dir, nil, 0) //nolint:staticcheck // no types are needed, so no build is either
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range packages {
			ast.Inspect(p, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.ValueSpec:
					if name, ok := n.Type.(*ast.Ident); ok && len(n.Values) == 1 {
						if text, ok := n.Values[0].(*ast.BasicLit); ok && text.Kind == source.STRING {
							value, _ := strconv.Unquote(text.Value)
							constants[name.Name] = append(constants[name.Name], value)
						}
					}
				case *ast.TypeSpec:
					for field, enum := range enumsOf(n) {
						enums[n.Name.Name+"."+field] = enum
					}
				}
				return true
			})
		}
	}
	if len(enums) < 15 {
		t.Fatalf("only %d enums were found: %v", len(enums), enums)
	}
	for field, enum := range enums {
		got, want := strings.Split(enum[1], ","), constants[enum[0]]
		if listed, ok := texts[field]; ok {
			want = listed
		}
		if len(want) == 0 {
			t.Errorf("%s has the enum %v: give it a type with constants, or say in this test where its values come from", field, got)
			continue
		}
		slices.Sort(got)
		if want = slices.Sorted(slices.Values(want)); !slices.Equal(got, want) {
			t.Errorf("%s has the enum %v, its values are %v", field, got, want)
		}
	}
	for field := range texts {
		if _, ok := enums[field]; !ok {
			t.Errorf("there is no enum at %s any more", field)
		}
	}
	if all := constants["RunStatus"]; !slices.Equal(all, statuses()) {
		t.Errorf("RunStatuses lists %v, the constants are %v", statuses(), all)
	}
}

// enumsOf finds the fields of a struct that have an enum: their type's name and the tag.
func enumsOf(spec *ast.TypeSpec) map[string][2]string {
	found := map[string][2]string{}
	structure, ok := spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, f := range structure.Fields.List {
		if f.Tag == nil || len(f.Names) != 1 {
			continue
		}
		tag, _ := strconv.Unquote(f.Tag.Value)
		if enum, ok := reflect.StructTag(tag).Lookup("enum"); ok {
			name, _ := f.Type.(*ast.Ident)
			if name == nil {
				name = ast.NewIdent("")
			}
			found[f.Names[0].Name] = [2]string{name.Name, enum}
		}
	}
	return found
}
