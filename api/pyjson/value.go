package pyjson

import (
	"strconv"
	"strings"
)

// Value is a JSON value in memory. The zero Value is null.
type Value struct {
	Kind     Kind
	Text     string // a string's text, or a literal as it is written
	Elements []Value
	Members  []Member
}

// Member is a name and its value. When a name comes twice, Python keeps the first place and the last value, and so does
// Read.
type Member struct {
	Name  string
	Value Value
}

// Parse reads b, which must hold one value and nothing else.
func Parse(b []byte) (Value, error) {
	d := NewBytes(b)
	v, err := d.Read()
	if err != nil {
		return Value{}, err
	}
	if more, err := d.More(); err != nil || more {
		return Value{}, d.Errorf("something follows the value")
	}
	return v, nil
}

// Read reads a value into memory.
func (d *Decoder) Read() (Value, error) {
	k, err := d.Peek()
	if err != nil {
		return Value{}, err
	}
	switch k {
	case String:
		s, err := d.ReadString()
		return Value{Kind: String, Text: s}, err
	case Array:
		return d.readArray()
	case Object:
		return d.readObject()
	default:
		text, err := d.literal()
		return Value{Kind: k, Text: string(text)}, err
	}
}

func (d *Decoder) readArray() (Value, error) {
	v := Value{Kind: Array}
	err := d.EachElement(func() error {
		e, err := d.Read()
		v.Elements = append(v.Elements, e)
		return err
	})
	return v, err
}

func (d *Decoder) readObject() (Value, error) {
	v := Value{Kind: Object}
	seen := map[string]int{}
	err := d.EachMember(func(raw []byte) error {
		name := string(raw)
		e, err := d.Read()
		if i, ok := seen[name]; ok {
			v.Members[i].Value = e
			return err
		}
		seen[name] = len(v.Members)
		v.Members = append(v.Members, Member{name, e})
		return err
	})
	return v, err
}

// Get returns the member of that name.
func (v Value) Get(name string) (Value, bool) {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value, true
		}
	}
	return Value{}, false
}

// IsNull reports whether the value is null.
func (v Value) IsNull() bool { return v.Kind == Null || v.Kind == 0 }

// Truthy is bool(v).
func (v Value) Truthy() bool {
	switch v.Kind {
	case Bool:
		return v.Text == "true"
	case Number:
		f, _ := strconv.ParseFloat(v.Text, 64)
		return f != 0
	case String:
		return v.Text != ""
	case Array:
		return len(v.Elements) > 0
	case Object:
		return len(v.Members) > 0
	}
	return false
}

// Str is str(v): a string's own text, anything else as Python prints it.
func (v Value) Str() string {
	if v.Kind == String {
		return v.Text
	}
	var b strings.Builder
	v.repr(&b)
	return b.String()
}
