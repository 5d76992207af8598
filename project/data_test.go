package project_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"potato/api/pyjson"
	"potato/project"
)

// texts reads a study whose only file is the given one, and returns what a trainer gets: text by id.
func texts(tb testing.TB, name, content, entry string) (map[string]string, []string, error) {
	tb.Helper()
	f := newFolder(tb, moodScheme)
	f.data = "[" + name + ", labelled.jsonl]"
	if entry != "" {
		f.data = "[" + entry + ", labelled.jsonl]"
	}
	f.train = "splits: {train: 1}"
	f.write(name, content)
	f.write("labelled.jsonl", `{"id": "~labelled", "text": ""}`)
	f.label("ann", map[string]string{"~labelled": radio("mood", "good")})
	dir := filepath.Join(tb.TempDir(), "bundle")
	m, err := f.open().BuildBundle(context.Background(), dir, project.BundleOptions{Schemas: []string{"mood"}, IncludeUnlabeled: true})
	if err != nil {
		return nil, nil, err
	}
	b, err := project.OpenBundle(dir)
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string]string{}
	for item, err := range b.Items() {
		if err != nil {
			tb.Fatal(err)
		}
		if item.Split == "unlabeled" {
			out[item.InstanceID] = item.Text
		}
	}
	return out, m.Stats.Warnings, nil
}

// What the published tool makes of the same files was seen by running it (PEER.md §10); ours differ where it breaks.
func TestDataFiles(t *testing.T) {
	cases := []struct {
		name, file, content string
		want                map[string]string
	}{
		{"array", "a.json", `[{"id": "x", "text": "one"}, {"id": "y", "text": "two"}]`, map[string]string{"x": "one", "y": "two"}},
		{"one object over lines", "a.json", "{\"id\": 1,\n\"text\": \"a\"}\n", map[string]string{"1": "a"}},
		{"lines and arrays in .json", "a.json", "{\"id\":1,\"text\":\"a\"}\n\n[{\"id\":2,\"text\":\"b\"},{\"id\":3,\"text\":\"c\"}]\n", map[string]string{"1": "a", "2": "b", "3": "c"}},
		{"JSON with a mark, CRLF", "a.json", "\ufeff[{\"id\":1,\r\n\"text\":\"a\"}]\r\n", map[string]string{"1": "a"}},
		{"lines with a mark, CRLF, blanks", "a.jsonl", "\ufeff{\"id\":1,\"text\":\"a\"}\r\n\r\n  \r\n{\"id\":2,\"text\":\"b\"}", map[string]string{"1": "a", "2": "b"}},
		{"a line separator inside a line", "a.jsonl", "{\"id\":1,\"text\":\"a\u2028b\u0085c\"}\n", map[string]string{"1": "a\u2028b\u0085c"}},
		{"ids of all kinds", "a.json", `[{"id":1,"text":"a"},{"id":1.0,"text":"b"},{"id":true,"text":"c"},{"id":123456789012345678901234567890,"text":"d"},{"id":1e16,"text":"e"},{"id":-0,"text":"f"},{"id":1e5,"text":"g"},{"id":0.1,"text":"h"},{"id":1e-7,"text":"i"},{"id":[1,"x"],"text":"j"},{"id":{"a":1},"text":"k"},{"id":" b ","text":"l"},{"id":-0.0,"text":"m"}]`,
			map[string]string{"1": "a", "1.0": "b", "True": "c", "123456789012345678901234567890": "d", "1e+16": "e", "0": "f", "100000.0": "g", "0.1": "h", "1e-07": "i", "[1, 'x']": "j", "{'a': 1}": "k", " b ": "l", "-0.0": "m"}},
		{"texts of all kinds", "a.json", `[{"id":1,"text":["a","b'c",1.5,null,true]},{"id":2,"text":{"k":"v","z":[1]}},{"id":3,"text":null},{"id":4,"text":0},{"id":5,"text":12.50},{"id":6,"text":true},{"id":8,"text":"<b>x</b> \u0000 \u200d é"},{"id":9,"text":["\u0000\n\u200d\u00e9\"'"]},{"id":11,"text":[]},{"id":12,"text":NaN},{"id":13,"text":false}]`,
			map[string]string{"1": `['a', "b'c", 1.5, None, True]`, "2": `{'k': 'v', 'z': [1]}`, "3": "", "4": "", "5": "12.5", "6": "True", "8": "<b>x</b> \x00 \u200d é", "9": `['\x00\n\u200dé"\'']`, "11": "", "12": "nan", "13": ""}},
		{"a field twice", "a.json", `[{"id":"b","id":"c","text":"x","text":"y"}]`, map[string]string{"c": "y"}},
		{"the text comes before the id", "a.json", `[{"text":"x","id":"c"}]`, map[string]string{"c": "x"}},
		{"CSV with mark, CRLF, newlines and quotes", "a.csv", "\ufeffid,text\r\n1,\"a\nb\r\nc\"\r\n\r\n2,x\"y\r\n3,\"p\"\"q\"z\r\n", map[string]string{"1": "a\nb\r\nc", "2": `x"y`, "3": `p"qz`}},
		{"CSV cells stay texts", "a.csv", "id,text\n007,NA\n1.0,\n", map[string]string{"007": "NA", "1.0": ""}},
		{"CSV with short rows", "a.csv", "id,text,more\n1\n2,b\n", map[string]string{"1": "", "2": "b"}},
		{"CSV with semicolons", "a.csv", "id;text\n1;hello, you\n2;\"a;b\"\n", map[string]string{"1": "hello, you", "2": "a;b"}},
		{"CSV with semicolons and a mark", "a.csv", "\ufeffid;text\r\n1;a\r\n", map[string]string{"1": "a"}},
		{"CSV with tabs", "a.csv", "id\ttext\n1\ta\n", map[string]string{"1": "a"}},
		{"CSV with a column twice", "a.csv", "id,text,text\n1,a,b\n", map[string]string{"1": "b"}},
		{"CSV with carriage returns", "a.csv", "id,text\r1,a\r2,b\r", map[string]string{"1": "a", "2": "b"}},
		{"CSV without a last line end", "a.csv", "text,id\na,1\n\"b\",2", map[string]string{"1": "a", "2": "b"}},
		{"TSV knows no quotes", "a.tsv", "id\ttext\n1\t\"a\n2\tb\r\n\n3\t\n", map[string]string{"1": `"a`, "2": "b", "3": ""}},
		{"upper-case suffix", "a.CSV", "id,text\n1,a\n", map[string]string{"1": "a"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, _, err := texts(t, c.file, c.content, "")
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Every bad file gets one sentence with the file, the line where there is one, and what to do (T48, T54).
func TestBadDataFiles(t *testing.T) {
	cases := []struct {
		name, file, content string
		says                []string
	}{
		{"Windows-1252", "a.csv", "id,text\n1,a\n2,caf\xe9\n", []string{"a.csv line 3", "not UTF-8", "0xE9"}},
		{"Windows-1252 in JSON", "a.json", "[{\"id\":1,\n\"text\":\"caf\xe9\"}]", []string{"a.json line 2", "not UTF-8"}},
		{"Windows-1252 in JSON lines", "a.jsonl", "{\"id\":1,\"text\":\"a\"}\n{\"id\":2,\"text\":\"caf\xe9\"}\n", []string{"a.jsonl line 2", "not UTF-8"}},
		{"a character cut off at the end", "a.csv", "id,text\n1,caf\xc3", []string{"a.csv line 2", "not UTF-8"}},
		{"UTF-16 unannounced", "a.csv", "\xff\xfei\x00d\x00", []string{"a.csv line 1", "not UTF-8"}},
		{"id twice", "a.json", "[{\"id\":1,\"text\":\"a\"},\n{\"id\":\"1\",\"text\":\"b\"}]", []string{`"1"`, "a.json line 1", "a.json line 2"}},
		{"id twice on one line", "a.json", `[{"id":"x","text":"a"},{"id":"1","text":"b"},{"id":"2","text":"b"},{"id":"1","text":"c"}]`, []string{`"1"`, "a.json line 1 (item 2)", "a.json line 1 (item 4)"}},
		{"id twice over files", "a.json", `[{"id":"~labelled","text":"a"}]`, []string{"a.json line 1", "labelled.jsonl line 1"}},
		{"empty id", "a.json", "[{\"id\":\"a\",\"text\":\"a\"},\n\n{\"id\":\"\",\"text\":\"b\"}]", []string{"a.json line 3", `"id"`}},
		{"blank id", "a.json", `[{"id":"  ","text":"b"}]`, []string{"a.json line 1"}},
		{"null id", "a.json", `[{"id":null,"text":"b"}]`, []string{"a.json line 1"}},
		{"no id", "a.jsonl", "{\"id\":1,\"text\":\"b\"}\n{\"text\":\"b\"}\n", []string{"a.jsonl line 2"}},
		{"empty id in a table", "a.csv", "id,text\n1,a\n,b\n", []string{"a.csv line 3"}},
		{"no id column", "a.csv", "key,text\n1,a\n", []string{"a.csv line 1", `"id"`, `"key", "text"`}},
		{"no id column in TSV", "a.tsv", "id text\n1 a\n", []string{"a.tsv line 1", `"id text"`}},
		{"too many cells", "a.csv", "id,text\n1,a,b\n", []string{"a.csv line 2", "3 cells", "2"}},
		{"line numbers count quoted newlines", "a.csv", "id,text\n1,\"a\nb\"\n2,a,b\n", []string{"a.csv line 4"}},
		{"torn JSON", "a.json", "[{\"id\":1,\"text\":\"a\"},\n{\"id\":2,", []string{"a.json line 2", "ends in the middle"}},
		{"torn line", "a.jsonl", "{\"id\":1,\"te\n{\"id\":2,\"text\":\"b\"}\n", []string{"a.jsonl line 1"}},
		{"no JSON", "a.json", "[{\"id\":1,\n\"text\":oops}]", []string{"a.json line 2"}},
		{"no object", "a.json", "[{\"id\":1,\"text\":\"a\"},\n5]", []string{"a.json line 2", "no JSON object"}},
		{"an array as a line", "a.jsonl", "[{\"id\":1,\"text\":\"a\"}]", []string{"a.jsonl line 1", "no JSON object"}},
		{"two objects on a line", "a.jsonl", `{"id":1,"text":"a"}{"id":2,"text":"a"}`, []string{"a.jsonl line 1", "follows"}},
		{"a control character", "a.jsonl", "{\"id\":1,\"text\":\"a\tb\"}", []string{"a.jsonl line 1", "control character"}},
		{"NUL bytes", "a.jsonl", "\x00\x00\x00", []string{"a.jsonl line 1"}},
		{"parquet", "a.parquet", "PAR1", []string{"a.parquet", "parquet"}},
		{"spreadsheet", "a.xlsx", "PK", []string{"a.xlsx", "suffix"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := newFolder(t, moodScheme)
			f.data = "[placeholder.json, labelled.jsonl]"
			f.write("placeholder.json", "[]")
			f.write("labelled.jsonl", `{"id": "~labelled", "text": ""}`)
			cfg := f.config()
			// Some of these files the config's own rules refuse already; a file may also turn bad later.
			cfg.DataFiles[0].Path = c.file
			f.write(c.file, c.content)
			s := project.OpenStudy(cfg)
			defer s.Close()
			_, err := s.Readiness(context.Background())
			refused(t, err, "bad_data", c.says...)
		})
	}
}

func TestMissingDataFile(t *testing.T) {
	f := newFolder(t, moodScheme)
	f.write("items.json", "[]")
	cfg := f.config()
	if err := os.Remove(filepath.Join(f.dir, "items.json")); err != nil {
		t.Fatal(err)
	}
	_, err := project.OpenStudy(cfg).Readiness(context.Background())
	refused(t, err, "bad_data", "items.json", "does not exist")
}

func TestTextField(t *testing.T) {
	got, warnings, err := texts(t, "a.json", "[{\"id\":1,\"text\":\"a\"},\n{\"id\":2,\"body\":\"b\"}]", "")
	if err != nil || got["2"] != "" {
		t.Fatalf("got %q, %v", got, err)
	}
	if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "a.json") && strings.Contains(w, "line 2") }) {
		t.Errorf("no warning names the file and the line: %q", warnings)
	}
	// Where no item at all has the field, it is the config that is wrong.
	f := newFolder(t, moodScheme)
	f.write("items.json", "[\n{\"id\":1,\"body\":\"a\"}]")
	_, err = f.open().Readiness(context.Background())
	refused(t, err, "bad_data", `"text"`, "items.json line 2")
}

func TestUnclosedQuoteWarns(t *testing.T) {
	got, warnings, err := texts(t, "a.csv", "id,text\n1,\"abc\n2,d\n", "")
	if err != nil || len(got) != 1 || got["1"] != "abc\n2,d\n" {
		t.Errorf("got %q, %v", got, err)
	}
	if !slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "a.csv line 2") }) {
		t.Errorf("no warning names the quote: %q", warnings)
	}
}

func TestEncodings(t *testing.T) {
	utf16le := func(s string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u), byte(u>>8))
		}
		return string(b)
	}
	utf16be := func(s string) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(s)) {
			b = append(b, byte(u>>8), byte(u))
		}
		return string(b)
	}
	table := "id,text\r\n1,é😀\r\n2,\"a\nb\"\r\n"
	want := map[string]string{"1": "é😀", "2": "a\nb"}
	for encoding, content := range map[string]string{
		"utf-8":     table,
		"utf-8-sig": "\ufeff" + table,
		"utf-16":    "\xff\xfe" + utf16le(table),
		"UTF_16":    "\xfe\xff" + utf16be(table),
		"utf-16-le": utf16le(table),
		"utf-16-be": utf16be(table),
	} {
		got, _, err := texts(t, "a.csv", content, fmt.Sprintf("{path: a.csv, encoding: %s}", encoding))
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: got %q, %v", encoding, got, err)
		}
	}
	for encoding, content := range map[string]string{"latin-1": "id,text\n1,caf\xe9\n", "iso-8859-1": "id,text\n1,caf\xe9\n", "cp1252": "id,text\n1,caf\xe9\n", "windows-1252": "id,text\n1,caf\xe9\n", "iso-8859-15": "id,text\n1,caf\xe9\n"} {
		got, _, err := texts(t, "a.csv", content, fmt.Sprintf("{path: a.csv, encoding: %s}", encoding))
		if err != nil || got["1"] != "café" {
			t.Errorf("%s: got %q, %v", encoding, got, err)
		}
	}
	_, _, err := texts(t, "a.csv", "id,text\n1,a\n2,\x81\n", "{path: a.csv, encoding: cp1252}")
	refused(t, err, "bad_data", "a.csv line 3")
	_, _, err = texts(t, "a.csv", utf16le("id,text\n1,a\n2,b")+"\x00\xd8", "{path: a.csv, encoding: utf-16}")
	refused(t, err, "bad_data", "a.csv line 3")
	f := newFolder(t, moodScheme)
	f.write("items.json", "[]")
	cfg := f.config()
	cfg.DataFiles[0].Encoding = "klingon"
	_, err = project.OpenStudy(cfg).Readiness(context.Background())
	refused(t, err, "bad_data", "klingon")
}

// Texts come through unchanged whatever is in them; a lone surrogate is written as the escape that it was (T54).
func TestTextsSurvive(t *testing.T) {
	long := strings.Repeat("é", 500_000) + "end"
	for id, text := range map[string]string{"emoji": "👩‍🚀 👍🏽", "rtl": "שלום \u202eabc\u202c", "NUL": "a\x00b", "empty": "", "surrogate": "a\xed\xa0\xbdb", "sur\xed\xb0\x80id": "x", "long": long, "formula": "=cmd()", "bar": "a|b/c"} {
		content := "[{\"id\": " + string(pyjson.AppendString(nil, id)) + ", \"text\": " + string(pyjson.AppendString(nil, text)) + "}]"
		got, _, err := texts(t, "a.json", content, "")
		if err != nil || len(got) != 1 || got[id] != text {
			t.Errorf("%q: got %.60q, %v", id, got, err)
		}
	}
}

func TestDataDirectory(t *testing.T) {
	f := newFolder(t, moodScheme)
	f.more = "data_directory: more\n"
	f.write("items.json", `[{"id":"a","text":"x"}]`)
	f.write("more/b.csv", "id,text\nb,y\n")
	f.write("more/c.jsonl", `{"id":"c","text":"z"}`)
	f.write("more/notes.txt", "not data")
	s := f.open()
	n, err := s.Items(context.Background())
	if err != nil || n != 3 {
		t.Errorf("got %d items, %v, want 3", n, err)
	}
	// A file that comes later is seen.
	f.write("more/d.tsv", "id\ttext\nd\tw\n")
	if n, err = s.Items(context.Background()); err != nil || n != 4 {
		t.Errorf("after another file: got %d items, %v, want 4", n, err)
	}
}

// fuzzData reads bytes of strangers as a data file: whatever they are, the answer is items or a sentence.
func fuzzData(f *testing.F, name string, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	dir := f.TempDir()
	path := filepath.Join(dir, name)
	f.Fuzz(func(t *testing.T, content []byte) {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		cfg := &project.Config{Dir: dir, TaskDir: ".", OutputAnnotationDir: "out", DataFiles: []project.DataFile{{Path: name}},
			ItemProperties: project.ItemProperties{IDKey: "id", TextKey: "text"}}
		s := project.OpenStudy(cfg)
		defer s.Close()
		n, err := s.Items(context.Background())
		if err != nil {
			refused(t, err, "bad_data", name)
			return
		}
		// A file of valid JSON objects with ids of their own is never refused, so n is what encoding/json counts.
		var items []map[string]any
		if strings.HasSuffix(name, ".json") && json.Unmarshal(content, &items) == nil && n != len(items) {
			t.Errorf("%d items, encoding/json finds %d", n, len(items))
		}
	})
}

func FuzzJSONFile(f *testing.F) {
	fuzzData(f, "a.json", `[{"id":1,"text":"a"}]`, "{\"id\":1,\"text\":\"a\"}\n[{\"id\":2,\"text\":\"b\"}]", "\ufeff[]", `[{"id":"\ud83d","text":NaN}]`)
}

func FuzzJSONLinesFile(f *testing.F) {
	fuzzData(f, "a.jsonl", "{\"id\":1,\"text\":\"a\"}\r\n\r\n{\"id\":2,\"text\":\"b\"}", "\x00", "[]")
}

func FuzzCSVFile(f *testing.F) {
	fuzzData(f, "a.csv", "id,text\r\n1,\"a\nb\"\"c\"\r2,x\n", "id;text\n1;2\n", "\ufeffid\n\"", "id,text\n1,\"a\rb")
}

func FuzzTSVFile(f *testing.F) {
	fuzzData(f, "a.tsv", "id\ttext\n1\ta\r\n", "id\r1\r")
}
