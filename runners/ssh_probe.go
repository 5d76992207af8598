package runners

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"potato/api"
	"potato/project"
	"potato/runners/hosts"
	"potato/trainers"
)

//go:embed host_paths.sh
var hostPaths string // before every script that needs it

//go:embed ssh_probe.sh
var probeScript string

//go:embed ssh_probe.py
var probeProgram string

// hostFacts are what a host said of itself. What it did not say in time is missing from told.
type hostFacts struct {
	told map[string]bool

	OS, Arch, Host, BootID string
	Time                   int64 // its clock, seconds since 1970
	UID, Home, Dir         string

	NotDir, Writable, HasCode bool
	Exec                      *bool // programs run below Dir; nil: not found out
	FreeMB, Inodes            *int64

	SMI    smiAnswer
	Torch  torchFacts
	Python string // the interpreter's path
	Said   api.Environment
	pyCode int
	pyErr  string
	tooOld string
}

// probe asks a host everything that a check or a run needs to know, in one script. It takes no longer than within.
func (s *SSH) probe(ctx context.Context, c *hosts.Conn, b project.Backend, within time.Duration) (hostFacts, error) {
	code, err := s.packedCode()
	if err != nil {
		return hostFacts{}, err
	}
	var said bytes.Buffer
	env := s.env(b)
	for name, value := range map[string]string{
		"probe_dir": b.RemoteDir, "probe_python": b.Python, "probe_program": probeProgram, "probe_code": s.codeHash(), "probe_venv": s.venvName(b),
		"probe_seconds": strconv.Itoa(max(1, int(within.Seconds())-1)),
	} {
		env[name] = value
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	a, err := c.Run(ctx, hosts.Script{Text: hostPaths + strings.Replace(probeScript, "@CODE@", code, 1), Env: env, Stdout: &said})
	f := readFacts(said.String())
	if err != nil && !(errors.Is(err, context.DeadlineExceeded) && f.told["host"]) {
		return f, err
	}
	if err == nil && a.Code != 0 && !f.told["host"] {
		return f, scriptFailed(b.Host, "look at it", a)
	}
	return f, nil
}

// scriptFailed is a step that a host refused.
func scriptFailed(host, what string, a hosts.Answer) *api.Error {
	why := lastOf(a.Stderr)
	code := "start_failed"
	if strings.Contains(a.Stderr, "No space left on device") || strings.Contains(a.Stderr, "quota exceeded") || strings.Contains(a.Stderr, "Disk quota") {
		code = "disk_full"
	}
	if why == "" {
		why = fmt.Sprintf("exit status %d", a.Code)
	}
	return WithHint(api.Unavailablef(code, "cannot %s on %s: %s", what, host, api.Printable(why)))
}

func lastOf(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// readFacts reads the probe's answer, or as much as came of it.
func readFacts(text string) hostFacts {
	f := hostFacts{told: map[string]bool{}, SMI: smiAnswer{Silent: true}}
	parts := map[string]*strings.Builder{}
	part := func(name string) string {
		if parts[name] == nil {
			return ""
		}
		return strings.TrimSpace(parts[name].String())
	}
	for line := range strings.Lines(text) {
		section, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), " ")
		if rest == "end" {
			f.told[section] = true
			continue
		}
		kind, value, _ := strings.Cut(rest, " ")
		key := section + " " + kind
		if parts[key] == nil {
			parts[key] = &strings.Builder{}
		}
		fmt.Fprintln(parts[key], value)
	}
	f.values(part("host out"), part("disk out"))
	if f.told["smi"] {
		code, _ := strconv.Atoi(part("smi rc"))
		f.SMI = smiAnswer{Code: code, Out: part("smi out")}
	}
	if f.told["torch"] {
		_, facts, _ := strings.Cut(part("torch out"), "\n")
		_ = json.Unmarshal([]byte(facts), &f.Torch) // an interpreter that says something else has no torch we know
	}
	f.python(part("python out"), part("python rc"), part("python err"))
	return f
}

func (f *hostFacts) values(texts ...string) {
	for line := range strings.Lines(strings.Join(texts, "\n")) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		for key, to := range map[string]*string{"os": &f.OS, "arch": &f.Arch, "host": &f.Host, "boot": &f.BootID, "uid": &f.UID, "home": &f.Home, "dir": &f.Dir} {
			if name == key {
				*to = value
			}
		}
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			continue
		}
		yes := n == 1
		switch name {
		case "time":
			f.Time = n
		case "notdir":
			f.NotDir = yes
		case "writable":
			f.Writable = yes
		case "code":
			f.HasCode = yes
		case "exec":
			f.Exec = &yes
		case "free":
			n >>= 10
			f.FreeMB = &n
		case "inodes":
			f.Inodes = &n
		}
	}
}

func (f *hostFacts) python(out, code, complaint string) {
	path, said, _ := strings.Cut(out, "\n")
	f.Python = strings.TrimPrefix(path, "path=")
	f.pyErr = lastOf(complaint)
	f.pyCode, _ = strconv.Atoi(code)
	var old struct {
		Version string `json:"too_old"`
	}
	if json.Unmarshal([]byte(said), &old) == nil && old.Version != "" {
		f.tooOld = old.Version
		return
	}
	if err := json.Unmarshal([]byte(said), &f.Said); err != nil && f.pyCode == 0 {
		f.pyCode, f.pyErr = 1, "its answer is not JSON"
	}
}

// pythonError says what is wrong with the host's interpreter, nil when nothing is.
func (f *hostFacts) pythonError(b project.Backend) error {
	switch {
	case !f.told["python"]:
		return api.Unavailablef("start_failed", "%s on %s did not answer in time", b.Python, b.Host).
			WithHint("run `%s -c 0` there and see what it waits for", b.Python)
	case f.pyCode == notFound && f.pyErr == "": // a loader that misses a library has the same status, and says which
		return WithHint(api.Unavailablef("python_missing", "%s was not found on %s", b.Python, b.Host))
	case f.pyCode == 126 && f.pyErr == "":
		return WithHint(api.Unavailablef("python_missing", "%s on %s is no program that may be executed", b.Python, b.Host))
	case f.tooOld != "":
		return WithHint(api.Unavailablef("python_too_old", "%s on %s is Python %s; Python 3.8 or newer is needed", b.Python, b.Host, f.tooOld))
	case f.pyCode != 0:
		return api.Unavailablef("start_failed", "%s on %s could not run the worker: %s", b.Python, b.Host, api.Printable(f.pyErr)).
			WithHint("set `python` to a Python interpreter, 3.8 or newer, that works")
	}
	return nil
}

// packedCode is the Python package with the study's own trainers, as a host's interpreter unpacks it.
func (s *SSH) packedCode() (string, error) {
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zip)
	add := func(name string, content []byte) error {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err := archive.Write(content)
		return err
	}
	err := eachCodeFile(s.o.Config, add)
	if err := errors.Join(err, archive.Close(), zip.Close()); err != nil {
		return "", fmt.Errorf("pack the trainers: %w", err)
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), nil
}

// eachCodeFile calls add for every file that goes to a host: the package, and a study's trainers below study/.
func eachCodeFile(c *project.Config, add func(name string, content []byte) error) error {
	files := trainers.Files()
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return add(name, content)
	})
	dir := c.TrainersPath()
	if err != nil || dir == "" {
		return err
	}
	if err := trainers.CheckDir(dir, c.OutputPath()); err != nil {
		return err
	}
	return trainers.EachStudyFile(dir, func(name string, content []byte) error { return add("study/"+name, content) })
}
