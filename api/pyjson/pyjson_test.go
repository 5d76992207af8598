package pyjson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"potato/api/pyjson"
)

func TestStrIsPythons(t *testing.T) {
	cases := []struct{ json, want string }{
		{`"a"`, "a"},
		{`1`, "1"},
		{`-0`, "0"},
		{`-0.0`, "-0.0"},
		{`1.0`, "1.0"},
		{`1e5`, "100000.0"},
		{`1e16`, "1e+16"},
		{`1E-7`, "1e-07"},
		{`0.0001`, "0.0001"},
		{`12.50`, "12.5"},
		{`1e400`, "inf"},
		{`NaN`, "nan"},
		{`-Infinity`, "-inf"},
		{`true`, "True"},
		{`null`, "None"},
		{`123456789012345678901234567890`, "123456789012345678901234567890"},
		{`["a","b'c",1.5,null,true,[],{}]`, `['a', "b'c", 1.5, None, True, [], {}]`},
		{`{"k":"v","z":[1],"k":2}`, `{'k': 2, 'z': [1]}`},
		{`["\u0000\n\u200d\u00e9\"'\\"]`, `['\x00\n\u200dé"\'\\']`},
		{`["\ud83d","\ud83d\ude00","\u00a0","\udc00\ud800"]`, `['\ud83d', '😀', '\xa0', '\udc00\ud800']`},
	}
	for _, c := range cases {
		v, err := pyjson.Parse([]byte(c.json))
		if err != nil {
			t.Errorf("Parse(%s): %v", c.json, err)
			continue
		}
		if got := v.Str(); got != c.want {
			t.Errorf("str of %s: got %q, want %q", c.json, got, c.want)
		}
	}
}

// The rules are Python's, so Python is asked: the table above could repeat a mistake of ours.
func TestStrAgainstPython(t *testing.T) {
	docs := []string{
		`0.1`, `1e22`, `123456789.125`, `5e-324`, `1.7976931348623157e308`, `-1e-5`, `100000000000000000.0`, `9007199254740993`,
		`["\u0001\u007f\u0080\u0085\u00ad\u0300\u0600\u2028\ue000\uffff\udbff","a\tb"]`, `["😀\udfff"]`, `{"a":{"b":[true,false,null]}}`,
		`["👩‍🚀 שלום \u202e"]`, `"\ud83d plain"`, `[1E2, 1.50, -0.0, -0]`,
	}
	in, err := json.Marshal(docs)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("python3", "-c", `import json,sys
sys.stdout.reconfigure(encoding="utf-8", errors="surrogatepass")
sys.stdout.write("\0".join(str(json.loads(d)) for d in json.load(sys.stdin)))`)
	cmd.Stdin = bytes.NewReader(in)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("python3 is needed by this test: %v", err)
	}
	want := strings.Split(string(out), "\x00")
	for i, doc := range docs {
		v, err := pyjson.Parse([]byte(doc))
		if err != nil {
			t.Errorf("Parse(%s): %v", doc, err)
			continue
		}
		if got := v.Str(); got != want[i] {
			t.Errorf("str of %s: got %q, want %q", doc, got, want[i])
		}
	}
}

func TestTextSurvives(t *testing.T) {
	for _, s := range []string{"", "é😀", "\x00\x1f\x7f", "a\u2028b\u0085c", "\xed\xa0\xbd", "x\xed\xb0\x80y", `"\/`, "👩‍🚀\u202eשלום", strings.Repeat("a\n", 1<<19)} {
		line := pyjson.AppendString(nil, s)
		if !utf8.Valid(line) {
			t.Errorf("%q is written as something that is not UTF-8: %q", s, line)
		}
		v, err := pyjson.Parse(line)
		if err != nil || v.Text != s {
			t.Errorf("%q came back as %q, %v", s, v.Text, err)
		}
		if strings.ContainsAny(string(line), "\n\r\u2028\u0085") {
			t.Errorf("%q is written over several lines", s)
		}
	}
	if got, want := string(pyjson.AppendString(nil, "a\xffb")), `"a`+"\uFFFD"+`b"`; got != want {
		t.Errorf("bytes that are no text: got %q, want %q", got, want)
	}
}

func TestBadJSONSaysWhere(t *testing.T) {
	cases := []struct {
		json string
		line int
	}{
		{"{\"a\": 1,\n \"b\" 2}", 2},
		{"[1\n2]", 2},
		{"[1,]", 1},
		{"{\"a\":1,}", 1},
		{"[01]", 1},
		{"[1.]", 1},
		{"[+1]", 1},
		{"\n\n[nul]", 3},
		{"[\"a\nb\"]", 1},
		{`["\x"]`, 1},
		{`["\u12g4"]`, 1},
		{`1 2`, 1},
		{strings.Repeat("[", 1000), 1},
		{"\"caf\xe9\" x", 1},
	}
	for _, c := range cases {
		_, err := pyjson.Parse([]byte(c.json))
		var syntax *pyjson.SyntaxError
		if !errors.As(err, &syntax) {
			t.Errorf("Parse(%q): got %v, want a SyntaxError", c.json, err)
			continue
		}
		if syntax.Line != c.line {
			t.Errorf("Parse(%q): line %d, want %d (%v)", c.json, syntax.Line, c.line, err)
		}
	}
	for _, half := range []string{"", "{", `{"a"`, `{"a":`, `{"a":1`, `["`, `["\u00`, `["a\`, "[1", "[1,", "tru", "-"} {
		if _, err := pyjson.Parse([]byte(half)); !errors.Is(err, pyjson.ErrTruncated) {
			t.Errorf("Parse(%q): got %v, want ErrTruncated", half, err)
		}
	}
}

// A reader that gives a byte at a time must make no difference.
func TestReadingInPieces(t *testing.T) {
	doc := `{"skip": {"deep": [1, "]", {"x": null}]}, "want": ["a\"b", 1.5e3, true], "long": "` + strings.Repeat("é", 50_000) + `"}`
	for name, r := range map[string]io.Reader{"whole": strings.NewReader(doc), "bytes": iotest.OneByteReader(strings.NewReader(doc)), "errors with data": iotest.DataErrReader(strings.NewReader(doc))} {
		d := pyjson.NewDecoder(r)
		if err := d.EnterObject(); err != nil {
			t.Fatal(name, err)
		}
		got := map[string]string{}
		for {
			member, more, err := d.NextMember()
			if err != nil {
				t.Fatal(name, err)
			}
			if !more {
				break
			}
			m := string(member)
			if m == "skip" {
				if err := d.Skip(); err != nil {
					t.Fatal(name, err)
				}
				continue
			}
			v, err := d.Read()
			if err != nil {
				t.Fatal(name, err)
			}
			got[m] = v.Str()
		}
		if got["want"] != `['a"b', 1500.0, True]` || len(got["long"]) != 100_000 || len(got) != 2 {
			t.Errorf("%s: got %q", name, got)
		}
		if d.Offset() != int64(len(doc)) {
			t.Errorf("%s: ended at %d, want %d", name, d.Offset(), len(doc))
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e-3,"\ud83d\u0000"]}`, `NaN`, `[true,false,null]`, `"\\\""`, "\"\xed\xa0\xbd\"", `[[[]]]`, `{"":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v, err := pyjson.Parse(b)
		if json.Valid(b) && err != nil && !strings.Contains(err.Error(), "deep") {
			t.Fatalf("valid JSON refused: %v", err)
		}
		if err != nil {
			return
		}
		_ = v.Str()
		d := pyjson.NewDecoder(iotest.OneByteReader(bytes.NewReader(b)))
		if again, err := d.Read(); err != nil || again.Str() != v.Str() {
			t.Fatalf("read in pieces: got %q, want %q, %v", again.Str(), v.Str(), err)
		}
		if v.Kind == pyjson.String && utf8.Valid(b) {
			again, err := pyjson.Parse(pyjson.AppendString(nil, v.Text))
			if err != nil || again.Text != v.Text {
				t.Fatalf("text %q came back as %q, %v", v.Text, again.Text, err)
			}
		}
	})
}
