package runnertest

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"
)

// Wheel writes a package that pip can install without an index.
func Wheel(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "potato_probe-1.0-py3-none-any.whl")
	f, err := os.Create(path)
	mustDo(t, err)
	z := zip.NewWriter(f)
	for name, text := range map[string]string{
		"potato_probe.py":                          "ANSWER = 42\n",
		"potato_probe-1.0.dist-info/METADATA":      "Metadata-Version: 2.1\nName: potato-probe\nVersion: 1.0\n",
		"potato_probe-1.0.dist-info/WHEEL":         "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		"potato_probe-1.0.dist-info/RECORD":        "",
		"potato_probe-1.0.dist-info/INSTALLER":     "test\n",
		"potato_probe-1.0.dist-info/top_level.txt": "potato_probe\n",
	} {
		w, err := z.Create(name)
		mustDo(t, err)
		_, err = w.Write([]byte(text))
		mustDo(t, err)
	}
	mustDo(t, z.Close())
	mustDo(t, f.Close())
	return path
}
