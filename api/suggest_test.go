package api_test

import (
	"strings"
	"testing"

	"potato/api"
)

func TestSuggest(t *testing.T) {
	keys := []string{"python", "packages", "host", "port", "time", "type", "lr", "min_free_gpu_mb"}
	for word, want := range map[string]string{
		"pyhton":          "python",
		"hots":            "host",
		"min_free_gpu_md": "min_free_gpu_mb",
		"tpe":             "type",
		"a":               "",
		"zzzzzz":          "",
		"":                "",
		"pythön":          "python",
	} {
		if got := api.Suggest(word, keys); got != want {
			t.Errorf("Suggest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestSuggestNeverProposesTheWordItself(t *testing.T) {
	if got := api.Suggest("host", []string{"host"}); got != "" {
		t.Errorf("got %q, want nothing", got)
	}
}

func TestSuggestDoesNotDependOnOrder(t *testing.T) {
	if a, b := api.Suggest("cat", []string{"bat", "hat"}), api.Suggest("cat", []string{"hat", "bat"}); a != b {
		t.Errorf("got %q and %q for the same candidates", a, b)
	}
}

func FuzzSuggest(f *testing.F) {
	f.Add("pyhton", "python,host")
	f.Fuzz(func(t *testing.T, word, candidates string) {
		list := strings.Split(candidates, ",")
		if got := api.Suggest(word, list); got != "" && !strings.Contains(candidates, got) {
			t.Errorf("Suggest(%q, %q) = %q, which is no candidate", word, list, got)
		}
	})
}
