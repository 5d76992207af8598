package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Clients made from the committed document by three generators compile and start a run.

func TestGoClientStartsARun(t *testing.T) {
	s := start(t, study(t))
	dir := t.TempDir()
	write(t, dir, "go.mod", "module client\n\ngo 1.26\n")
	write(t, dir, "oapi.yaml", "package: main\noutput: client.go\ngenerate: {models: true, client: true}\noutput-options: {response-type-suffix: Reply}\n")
	write(t, dir, "main.go", fixture(t, "clients/main.go.txt"))
	command(t, dir, "go", "run", "github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2", "-config", "oapi.yaml", document())
	command(t, dir, "go", "get", "github.com/oapi-codegen/runtime@v1.9.0")
	id := command(t, dir, "go", "run", ".", s.URL, key)
	s.finished(id, "success")
}

func TestPythonClientStartsARun(t *testing.T) {
	tools := toolsVenv(t)
	s := start(t, study(t))
	dir := t.TempDir()
	write(t, dir, "main.py", fixture(t, "clients/main.py.txt"))
	command(t, dir, filepath.Join(tools, "openapi-python-client"), "generate", "--path", document(), "--output-path", "training_client", "--meta", "none")
	id := command(t, dir, filepath.Join(tools, "python"), "main.py", s.URL, key)
	s.finished(id, "success")
}

func TestTypeScriptClientStartsARun(t *testing.T) {
	modules := filepath.Join(root, "node_modules")
	_, err := os.Stat(filepath.Join(modules, "openapi-fetch"))
	need(t, err == nil, "node_modules; `make spa` installs them")
	s := start(t, study(t))
	dir := t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	generator := filepath.Join(root, "spa", "tools", "node_modules", ".bin", "openapi-typescript")
	command(t, dir, generator, document(), "-o", "schema.d.ts")
	write(t, dir, "package.json", `{"type": "module"}`)
	write(t, dir, "main.ts", fixture(t, "clients/main.ts.txt"))
	write(t, dir, "tsconfig.json", `{"compilerOptions": {"strict": true, "module": "nodenext", "target": "es2023", "lib": ["es2023", "dom"], "types": [], "skipLibCheck": true}}`)
	command(t, dir, filepath.Join(modules, ".bin", "tsc"), "-p", ".")
	id := command(t, dir, "node", "main.js", s.URL, key)
	s.finished(id, "success")
}

func document() string { return filepath.Join(root, "openapi", "openapi.yaml") }

// toolsVenv is the folder of programs of the virtual environment with the test tools.
func toolsVenv(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(root, ".venv-tools", "bin")
	_, err := os.Stat(bin)
	need(t, err == nil, ".venv-tools; `make e2e` makes it")
	return bin
}

func fixture(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// command runs a program and returns what it printed, trimmed.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, stderr.String())
	}
	return strings.TrimSpace(string(out))
}
