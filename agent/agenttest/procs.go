package agenttest

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Marked lists the living processes that carry the marker in their environment, as "pid command line". It looks by
// itself, not with the agent's eyes. It works where there is a /proc.
func Marked(marker string) []string {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []string
	for _, path := range paths {
		env, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(env, []byte("POTATO_MARKER="+marker+"\x00")) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		found = append(found, strconv.Itoa(pid)+" "+strings.ReplaceAll(string(line), "\x00", " "))
	}
	return found
}
