// Package openapi_test holds the committed document equal to what the handlers say.
package openapi_test

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/go-chi/chi/v5"

	"potato/handlers"
)

var update = flag.Bool("update", false, "write the document anew")

func TestDocumentIsFresh(t *testing.T) {
	got, err := handlers.New(chi.NewMux(), handlers.Options{}).OpenAPI().YAML()
	if err != nil {
		t.Fatal(err)
	}
	const path = "openapi.yaml"
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("read the document: %v; `make generate` writes it", err)
	}
	if !bytes.Equal(got, want) {
		t.Fatal("openapi/openapi.yaml is stale; run `make generate` and commit it")
	}
}
