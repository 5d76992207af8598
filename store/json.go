package store

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"fmt"
)

// asJSON stores a value as a JSON text and reads it back; a nil pointer, map or list is NULL where the column allows it.
type asJSON struct{ v any }

// Value implements driver.Valuer.
func (j asJSON) Value() (driver.Value, error) {
	s, err := encode(j.v)
	if err != nil || s == "null" {
		return nil, err
	}
	return s, nil
}

// Scan implements sql.Scanner. NULL leaves the value as it is.
func (j asJSON) Scan(src any) error {
	switch s := src.(type) {
	case nil:
		return nil
	case string:
		return json.Unmarshal([]byte(s), j.v)
	case []byte:
		return json.Unmarshal(s, j.v)
	default:
		return fmt.Errorf("a JSON column holds %T", src)
	}
}

// encode writes a value as one JSON text, with <, > and & as they are so that texts can be compared and searched.
func encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", fmt.Errorf("encode a row: %w", err)
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte{'\n'})), nil
}

// list, and object, give an empty value where there is none: those columns are never NULL.
func list[T any](v []T) asJSON {
	if v == nil {
		v = []T{}
	}
	return asJSON{v}
}

func object[K comparable, V any](v map[K]V) asJSON {
	if v == nil {
		v = map[K]V{}
	}
	return asJSON{v}
}
