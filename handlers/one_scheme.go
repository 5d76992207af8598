package handlers

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
)

// takeOneScheme lets an order name its only scheme without a list around it, as programs written for the annotation tool's
// own training do. The document says so in words: a type of two kinds would be a burden to every client made from it.
func takeOneScheme(ctx huma.Context, next func(huma.Context)) {
	r, _ := humachi.Unwrap(ctx)
	r.Body = &oneScheme{body: r.Body}
	next(ctx)
}

// oneScheme is a body that is read, and put right, when somebody reads it: limit and deadline are the reader's.
type oneScheme struct {
	body io.ReadCloser
	text io.Reader
}

// Read reads the body as it should have been.
func (o *oneScheme) Read(b []byte) (int, error) {
	if o.text == nil {
		text, err := io.ReadAll(io.LimitReader(o.body, maxBody))
		if err != nil {
			return 0, err
		}
		o.text = io.MultiReader(bytes.NewReader(listScheme(text)), o.body)
	}
	return o.text.Read(b)
}

// Close closes the body.
func (o *oneScheme) Close() error { return o.body.Close() }

func listScheme(text []byte) []byte {
	var order map[string]json.RawMessage
	if json.Unmarshal(text, &order) != nil || len(order["schemas"]) == 0 || order["schemas"][0] != '"' {
		return text
	}
	order["schemas"] = append(append([]byte{'['}, order["schemas"]...), ']')
	if listed, err := json.Marshal(order); err == nil {
		return listed
	}
	return text
}
