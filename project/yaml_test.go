package project_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"potato/project"
)

const retrain = study + "model_training:\n  auto_retrain:\n    params:\n"

// Scalars are what PyYAML 6.0.3, the annotation tool's reader, makes of them.
func TestScalarsAreThoseOfYAML11(t *testing.T) {
	for text, want := range map[string]any{
		"1": int64(1), "010": int64(8), "08": "08", "0x1F": int64(31), "0b11": int64(3), "0o10": "0o10", "1_000": int64(1000),
		"+7": int64(7), "-3": int64(-3), "-0x10": int64(-16), "12:00:00": int64(43200), "04:00:00": "04:00:00", "1:30": int64(90),
		"-1:30": int64(-90), "190:20:30": int64(685230), "00": int64(0), "-0": int64(0), "1__2": int64(12),
		"1e3": "1e3", "1.0e+3": 1000.0, "1.e3": "1.e3", "1.": 1.0, ".5": 0.5, "-.5": "-.5", "12:30.5": 750.5,
		"685.230_15e+03": 685230.15, "-2.5": -2.5, "1,2": "1,2", ".": ".", "+.5": "+.5", "0b": "0b", "0x": "0x",
		"yes": true, "No": false, "on": true, "OFF": false, "TRUE": true, "y": "y", "yEs": "yEs",
		"~": nil, "null": nil, "Null": nil, "nULL": "nULL",
		"2026-11-29": "2026-11-29", "2026-11-29T10:00:00Z": "2026-11-29T10:00:00Z",
		`"1"`: "1", `'yes'`: "yes", `"~"`: "~", "!!str 1": "1", `!!int "3"`: int64(3), `!!bool "on"`: true, "!!null x": nil,
		"[1, [a, ~]]": []any{int64(1), []any{"a", nil}}, "{x: {y: 2.5}}": map[string]any{"x": map[string]any{"y": 2.5}},
		"http://h:8000/x": "http://h:8000/x", "a b  # c": "a b", "a#b": "a#b", `"x\u0041\t"`: "xA\t", "it's": "it's", "'it''s'": "it's",
	} {
		c, r := project.Load(writeStudy(t, retrain+"      a: "+text+"\n"))
		if c == nil {
			t.Errorf("%s is refused: %q", text, found(r.Errors))
			continue
		}
		if got := c.ModelTraining.AutoRetrain.Params["a"]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %#v, want %#v", text, got, want)
		}
	}
}

func TestTextOverSeveralLines(t *testing.T) {
	for text, want := range map[string]string{
		" |\n        b\n         c\n\n\n": "b\n c\n",
		" |-\n        b\n":                "b",
		" |+\n        b\n\n":              "b\n\n",
		" >\n        b\n        c\n":      "b c\n",
		" b\n        c\n":                 "b c",
		" \"b\n        c\"\n":             "b c",
	} {
		c := mustLoad(t, retrain+"      a:"+text)
		if got := c.ModelTraining.AutoRetrain.Params["a"]; got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// Merge keys and aliases are followed; a map's own keys win, then the maps in their order.
func TestAnchorsAndMergeKeys(t *testing.T) {
	c := mustLoad(t, study+`model_training:
  backends:
    a: &a
      type: ssh
      host: one.example.org
      port: 1
      env: &env {X: "1"}
    b: &b
      <<: *a
      host: two.example.org
    c:
      user: me
      <<: [{port: 7, user: you}, *b]
      env: *env
    d: {<<: {<<: *b}, port: 9}
`)
	var got []string
	for _, b := range c.ModelTraining.Backends {
		got = append(got, fmt.Sprint(b.Name, " ", b.Host, " ", b.Port, " ", b.User, " ", b.Env["X"]))
	}
	want := "a one.example.org 1  1, b two.example.org 1  1, c two.example.org 7 me 1, d two.example.org 9  1"
	if strings.Join(got, ", ") != want {
		t.Errorf("got %s, want %s", strings.Join(got, ", "), want)
	}
}

// The order of splits decides where items fall (the published tool's split rule), so it is the file's; merged ones come
// first, in theirs.
func TestSplitsKeepTheirOrder(t *testing.T) {
	for config, want := range map[string]string{
		"{test: 1, train: 8, dev: 0.5}":                                    "[{test 1} {train 8} {dev 0.5}]",
		"{dev: 1, train: 2, <<: [{test: 3, train: 4}, {val: 5, test: 6}]}": "[{test 3} {train 2} {val 5} {dev 1}]",
	} {
		if got := fmt.Sprint(mustLoad(t, study+"model_training: {splits: "+config+"}\n").ModelTraining.Splits); got != want {
			t.Errorf("%s: got %s, want %s", config, got, want)
		}
	}
}

// A value that is ${NAME} and nothing else comes from the environment, as in the annotation tool. It is typed as if it
// stood there without quotes, and is not looked at for further names.
func TestEnvironment(t *testing.T) {
	t.Setenv("POTATO_TEST_FILE", "data/reviews.json")
	t.Setenv("POTATO_TEST_KEY", "${POTATO_TEST_FILE}")
	t.Setenv("POTATO_TEST_WALL", "90")
	t.Setenv("POTATO_TEST_ON", "yes")
	c := mustLoad(t, strings.Replace(study, "data/reviews.json", `"${POTATO_TEST_FILE}"`, 1)+`admin_api_key: ${POTATO_TEST_KEY}
debug: ${POTATO_TEST_ON}
model_training:
  max_wall_seconds: "${POTATO_TEST_WALL}"
  python: /opt/${POTATO_TEST_ON}/python
  warm_worker: auto
`)
	if got := c.DataFiles[0].Path; got != "data/reviews.json" {
		t.Errorf("data file: got %s", got)
	}
	if got := c.AdminAPIKey.Reveal(); got != "${POTATO_TEST_FILE}" {
		t.Errorf("key: got %s, want the variable's own text", got)
	}
	if m := c.ModelTraining; m.MaxWallSeconds != 90 || !c.Debug || m.Python != "/opt/${POTATO_TEST_ON}/python" {
		t.Errorf("got %v, %v, %s", m.MaxWallSeconds, c.Debug, m.Python)
	}
}

// What a variable holds may be a secret: no message has it.
func TestEnvironmentIsNotPrinted(t *testing.T) {
	t.Setenv("POTATO_TEST_SECRET", "hunter2")
	_, r := project.Load(writeStudy(t, strings.Replace(study, "data/reviews.json", `"${POTATO_TEST_SECRET}"`, 1)+`
data_directory: ${POTATO_TEST_SECRET}
model_training:
  backend: ${POTATO_TEST_SECRET}
  device: ${POTATO_TEST_SECRET}
  retain_runs: ${POTATO_TEST_SECRET}
  trainers_dir: ${POTATO_TEST_SECRET}
`))
	all := strings.Join(found(append(r.Errors, r.Warnings...)), "\n")
	if len(r.Errors) != 6 || strings.Contains(all, "hunter2") {
		t.Errorf("got %s", all)
	}
}

func TestFilesThatAreNoConfig(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"empty":          {"", "1:1 Config file is empty"},
		"comment":        {"# nothing\n\n", "1:1 Config file is empty"},
		"null":           {"~\n", "1:1 Config file is empty"},
		"text":           {"hello\n", "1:1 Config root must be a YAML mapping of keys to values; it is text"},
		"list":           {"\n- a\n", "2:1 Config root must be a YAML mapping of keys to values; it is a list"},
		"open list":      {"a: [b\n", "2:1 YAML parse error: did not find expected ',' or ']'"},
		"two documents":  {study + "---\na: 1\n", "7:1 The config file holds more than one YAML document; leave one and remove the --- before the others"},
		"tab":            {study + "ui:\n\tb: 1\n", "8:1 YAML parse error: the line begins with a tab; YAML is indented with spaces"},
		"unknown anchor": {"a: *b\n", "1:4 YAML parse error: unknown anchor 'b' referenced"},
		"own alias":      {"a: &a [*a]\n", "1:8 The alias *a stands inside what it is an alias of"},
		"foreign tag":    {"a: !!python/object/apply:os.getcwd []\n", "1:4 The tag !!python/object/apply… means nothing here; remove it"},
		"key as a list":  {"[a, b]: c\n", "1:1 A key is a list; it must be text"},
		"merge of text":  {"<<: a\n", "1:1 The merge key << takes a map or a list of maps; it is given text"},
		"latin-1":        {"a: 1\nb: caf\xe9\n", "2:1 The config file is not UTF-8 text; save it with that encoding"},
		"utf-16":         {"\xff\xfea\x00:\x00", "1:1 The config file is not UTF-8 text; save it with that encoding"},
		"NUL":            {"a: b\x00c\n", "1:1 YAML parse error: control characters are not allowed"},
		"too large":      {strings.Repeat("# twelve chars\n", 300000), "0:0 Config file is larger than 4 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg, r := project.Load(writeStudy(t, c.text))
			if got := strings.Join(found(r.Errors), "\n"); cfg != nil || got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
	if _, r := project.Load("/nowhere/config.yaml"); len(r.Errors) != 1 || r.Errors[0].Message != "Config file not found: /nowhere/config.yaml" {
		t.Errorf("got %q", found(r.Errors))
	}
	dir := t.TempDir()
	if _, r := project.Load(dir); len(r.Errors) != 1 || r.Errors[0].Message != dir+" is a folder; name the config file in it" {
		t.Errorf("got %q", found(r.Errors))
	}
}

// Byte order marks, line ends of other systems, %YAML lines and document marks change nothing.
func TestFormsOfTheSameConfig(t *testing.T) {
	for name, text := range map[string]string{
		"BOM":           "\ufeff" + study,
		"CRLF":          strings.ReplaceAll(study, "\n", "\r\n"),
		"version":       "%YAML 1.1\n---\n" + study,
		"marks":         "---\n" + study + "...\n",
		"no last line":  strings.TrimSuffix(study, "\n"),
		"indented":      "  " + strings.ReplaceAll(strings.TrimSpace(study), "\n", "\n  ") + "\n",
		"flow":          `{annotation_task_name: Reviews, data_files: ["data/reviews.json"], item_properties: {"id_key":"id", "text_key":"text"}, output_annotation_dir: x, annotation_schemes: [{annotation_type: text, name: q,}],}`,
		"comments":      strings.ReplaceAll(study, "\n", "  # note\n"),
		"blank in line": strings.ReplaceAll(study, "annotation_schemes", " \nannotation_schemes"),
	} {
		if c, r := project.Load(writeStudy(t, text)); c == nil || c.AnnotationTaskName != "Reviews" || len(r.Warnings) > 0 {
			t.Errorf("%s: errors %q, warnings %q", name, found(r.Errors), found(r.Warnings))
		}
	}
}

// A few lines can ask for more than any memory holds; they get an answer instead.
func TestAliasesThatGrow(t *testing.T) {
	bomb := "      a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'j'; c++ {
		bomb += fmt.Sprintf("      %c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c, ", c-1), 10), ", "))
	}
	merges := "x0: &x0 {a: 1, b: 2}\n"
	for i := 1; i < 40; i++ {
		merges += fmt.Sprintf("x%d: &x%d {<<: [*x%d, *x%d], k%d: 1}\n", i, i, i-1, i-1, i)
	}
	labels := "x: &l [" + strings.Repeat("a, ", 3000) + "b]\nannotation_schemes:\n" +
		strings.Repeat("- {annotation_type: radio, name: a, labels: *l}\n", 1000)
	for name, text := range map[string]string{
		"lists":  retrain + bomb,
		"labels": strings.Replace(study, "annotation_schemes:", labels+"y:", 1),
	} {
		if _, r := project.Load(writeStudy(t, text)); len(r.Errors) == 0 || !strings.Contains(r.Errors[0].Message, "beyond all measure") {
			t.Errorf("%s: got %.300q", name, found(r.Errors))
		}
	}
	if _, r := project.Load(writeStudy(t, study+merges)); len(r.Errors) > 0 {
		t.Errorf("merges: got %.300q", found(r.Errors))
	}
}

// FuzzConfig: whatever the bytes, there is an answer that names places of the file, and a config only without errors.
func FuzzConfig(f *testing.F) {
	seed, err := os.ReadFile("testdata/config/seed.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range []string{string(seed), study, retrain + "      a: [1, {b: ~}]\n", "a: &a\n  b: *a\n", "{<<: [*x], ? [a] : b}", "- \t!!int x",
		study + "validation: {acknowledge: [model_training.backends.c.time is, x]}\nmodel_training: {backends: {c: {type: slurm, time: 7-0}}}\n"} {
		f.Add(s)
	}
	path := writeStudy(f, "")
	f.Fuzz(func(t *testing.T, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, loaded := project.Load(path)
		validated := project.Validate(path)
		if (c == nil) != (len(loaded.Errors) > 0) {
			t.Errorf("a config is %v with the errors %q", c != nil, found(loaded.Errors))
		}
		if !reflect.DeepEqual(loaded.Errors, validated.Errors) {
			t.Errorf("start says %q, validate says %q", found(loaded.Errors), found(validated.Errors))
		}
		lines := strings.Count(text, "\n") + strings.Count(text, "\r") + strings.Count(text, "\u0085") + strings.Count(text, "\u2028") +
			strings.Count(text, "\u2029") + 1
		for _, p := range append(validated.Errors, validated.Warnings...) {
			if p.Message == "" || p.Line < 0 || p.Line > lines+1 || strings.ContainsAny(p.Message+p.Path, "\n\r\x00\x1b") {
				t.Errorf("%q at %d:%d of %d lines", p.Message, p.Line, p.Column, lines)
			}
		}
	})
}
