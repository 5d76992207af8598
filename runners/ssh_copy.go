package runners

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"potato/api"
	"potato/project"
	"potato/runners/agents"
	"potato/runners/hosts"
)

//go:embed ssh_unpack.py
var unpackProgram string

//go:embed ssh_venv.py
var venvProgram string

// remote are the places of a run on its host.
type remote struct {
	Dir    string `json:"dir"`    // remote_dir, absolute
	Code   string `json:"code"`   // the agent and the trainers
	Python string `json:"python"` // the worker's interpreter
	Host   string `json:"host"`   // by its own words
	BootID string `json:"boot_id"`
}

func (r remote) agent() string  { return r.Code + "/potato-agent" }
func (r remote) worker() string { return r.Code + "/potato_trainers/worker.py" }
func (r remote) study() string  { return r.Code + "/study" }

// copyCode puts the agent and the trainers on the host, unless they are there. Runs that begin at the same moment may both
// do so: each file appears whole, and is the same.
func (s *SSH) copyCode(ctx context.Context, c *hosts.Conn, b project.Backend, f hostFacts, r remote) error {
	if f.HasCode {
		return nil
	}
	var archive bytes.Buffer
	if err := s.packHost(agents.PlatformOf(f.OS, f.Arch), &archive); err != nil {
		return err
	}
	sum := sha256.Sum256(archive.Bytes())
	mark := fmt.Sprintf(".complete-%s-%s", f.OS, f.Arch)
	env := s.env(b)
	env["unpack"] = unpackProgram
	a, err := c.Run(ctx, hosts.Script{
		Text: fmt.Sprintf(`%s -c "$unpack" %s %s %s`, hosts.Quote(f.Python), hosts.Quote(r.Code), hex.EncodeToString(sum[:]), hosts.Quote(mark)),
		Env:  env, Stdin: &archive,
	})
	if err != nil {
		return err
	}
	if a.Code != 0 {
		return scriptFailed(b.Host, "copy Potato's code to "+r.Code, a)
	}
	return nil
}

func (s *SSH) packHost(p agents.Platform, to io.Writer) error {
	archive := tar.NewWriter(to)
	add := func(name string, mode int64, size int64, from io.Reader) error {
		if err := archive.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: size, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err := io.Copy(archive, from)
		return err
	}
	program, size, err := s.program(p)
	if err != nil {
		return err
	}
	err = add("potato-agent", 0o700, size, program)
	err = errors.Join(err, program.Close())
	if err == nil {
		err = eachCodeFile(s.o.Config, func(name string, content []byte) error {
			return add(name, 0o600, int64(len(content)), bytes.NewReader(content))
		})
	}
	if err := errors.Join(err, archive.Close()); err != nil {
		return fmt.Errorf("pack Potato's code: %w", err)
	}
	return nil
}

// program is the agent for a platform: one that this build carries, else this program itself.
func (s *SSH) program(p agents.Platform) (io.ReadCloser, int64, error) {
	if program, err := agents.Find(p); err == nil && (s.o.Agent == "" || s.own(p) == "") {
		r, err := program.Open()
		return r, program.Size, err
	}
	if err := s.hasAgent(p); err != nil {
		return nil, 0, err
	}
	f, err := os.Open(s.own(p))
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, st.Size(), nil
}

// makeVenv makes the environment for `packages` unless it is there (H2).
func (s *SSH) makeVenv(ctx context.Context, c *hosts.Conn, b project.Backend, f hostFacts, r *remote, j Job) error {
	name := s.venvName(b)
	if name == "" {
		return nil
	}
	dir := r.Dir + "/" + name
	r.Python = dir + "/bin/python"
	if f.Python == r.Python {
		return nil // the probe found it
	}
	words := []string{hosts.Quote(f.Python), "-c", `"$venv"`, hosts.Quote(dir)}
	for _, p := range b.Packages {
		words = append(words, hosts.Quote(p))
	}
	env := s.env(b)
	env["venv"] = venvProgram
	why := ""
	lines := &lineWriter{line: func(text string) {
		kind, rest, _ := strings.Cut(text, " ")
		switch kind {
		case "step":
			j.Step(rest + " on " + b.Host)
		case "fail":
			why = rest
		default:
			j.Say(rest)
		}
	}}
	a, err := c.Run(ctx, hosts.Script{Text: strings.Join(words, " "), Env: env, Stdout: lines})
	switch {
	case err != nil:
		return err
	case why != "":
		return api.Unavailablef("missing_dependency", "the environment for `packages` could not be made on %s: %s", b.Host, api.Printable(why)).
			WithHint("mend `packages`, or see why %s cannot reach the package index; agent.log has what pip said", b.Host)
	case a.Code != 0:
		return scriptFailed(b.Host, "make the environment for `packages`", a)
	}
	return nil
}

// lineWriter hands on whole lines.
type lineWriter struct {
	line func(string)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	w.rest = append(w.rest, p...)
	for {
		i := bytes.IndexByte(w.rest, '\n')
		if i < 0 {
			if len(w.rest) > 64<<10 {
				w.rest = w.rest[:0]
			}
			return len(p), nil
		}
		if text := api.Printable(strings.TrimSpace(string(w.rest[:i]))); text != "" {
			w.line(text)
		}
		w.rest = w.rest[i+1:]
	}
}

func jsonLine(v any) io.Reader {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // only types of ours come here
	}
	return bytes.NewReader(append(b, '\n'))
}
