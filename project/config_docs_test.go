package project_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"potato/project"
)

var update = flag.Bool("update", false, "write the key tables anew")

const keysPage = "../docs/config-keys.md"

// The documentation's key tables are made from the types that the config is read into.
func TestKeyTablesAreFresh(t *testing.T) {
	got := keyTables()
	if *update {
		if err := os.WriteFile(keysPage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(keysPage)
	if err != nil {
		t.Fatalf("read the key tables: %v; `make generate` writes them", err)
	}
	if got != string(want) {
		t.Fatal("docs/config-keys.md is stale; run `make generate` and commit it")
	}
}

func keyTables() string {
	var b strings.Builder
	b.WriteString(`# The keys of the config

Every key below ` + "`model_training`" + ` of a study's config.yaml, made from the types that read it (` + "`make generate`" + `).
` + "`potato validate config.yaml`" + ` says which of them are wrong, where, and what was probably meant. Seconds may have a
fraction; a megabyte is 1024 * 1024 bytes. A key without a default is off, empty or unlimited while it is absent;
a backend needs its type, and one of ssh or slurm a host.
`)
	cell := strings.NewReplacer("|", `\|`, "<", "&lt;")
	for _, table := range project.KeyTables() {
		fmt.Fprintf(&b, "\n## %s\n\n| key | value | default | what |\n|---|---|---|---|\n", table.Block)
		for _, k := range table.Keys {
			byDefault, doc := "", cell.Replace(k.Doc)
			if k.Default != "" {
				byDefault = "`" + k.Default + "`"
			}
			if k.Sbatch != "" {
				doc += " (`sbatch --" + k.Sbatch + "`)"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, k.Type, byDefault, doc)
		}
	}
	return b.String()
}
