package runners_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"potato/api"
	"potato/runners"
	"potato/runners/hosts"
	"potato/runners/hosts/hoststest"
	"potato/runners/runnertest"
)

// H7: a copy goes on where it was cut off, takes nothing for whole that is not, and leaves on the host what is too large.
func TestSSHFetchGoesOn(t *testing.T) {
	t.Parallel()
	rig := hoststest.Get(t)
	home, err := hoststest.Home(hoststest.Bash)
	if err != nil {
		t.Fatal(err)
	}
	for _, transport := range []string{hosts.TransportNative, hosts.TransportOpenSSH} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			job, err := os.MkdirTemp(home, "potato-fetch-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(job) })
			dir, here := filepath.Join(job, "jobs", "one"), filepath.Join(t.TempDir(), "artifacts")
			big := make([]byte, 3<<20)
			_, _ = rand.Read(big)
			there := map[string][]byte{"big.bin": big, "deep/er/small.txt": []byte("small\n"), "empty": {}, "changed.bin": bytes.Repeat([]byte("new"), 1000), "huge.bin": make([]byte, 5<<20)}
			for name, content := range there {
				put(t, filepath.Join(dir, "artifacts", name), content)
			}
			put(t, filepath.Join(dir, "plan.json"), []byte(`{"python":"/usr/bin/python3","worker":"x"}`))
			if err := os.Symlink("/etc/passwd", filepath.Join(dir, "artifacts", "link")); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("chown", "-R", hoststest.Bash, job).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			put(t, filepath.Join(here, "big.bin"), big[:1<<20])                          // cut off
			put(t, filepath.Join(here, "changed.bin"), bytes.Repeat([]byte("old"), 500)) // of another attempt

			var warnings []string
			r := runners.NewSSH(runners.SSHOptions{
				Config: runnertest.Study(t, fmt.Sprintf("  backends:\n    box: {type: ssh, host: target, transport: %s, max_artifact_mb: 4}\n", transport)),
				Hosts:  hosts.Options{ConfigFile: rig.Config},
			})
			defer r.Close()
			j := runners.Job{
				Job: api.Job{RunID: "20261129T000000-000000"}, Backend: "box", Dir: filepath.Dir(here), Step: func(string) {}, Say: func(string) {},
				Warn: func(text string) { warnings = append(warnings, text) },
			}
			h := api.Handle{Backend: "box", Dir: dir, Host: "target"}
			// What was there of the changed file makes a whole that has another digest: it is dropped, and comes anew.
			whole, err := r.Fetch(t.Context(), j, h, true)
			if err != nil || whole {
				t.Fatalf("got %v, %v; want that something stays", whole, err)
			}
			for name, want := range there {
				got, err := os.ReadFile(filepath.Join(here, name))
				if name == "huge.bin" {
					if err == nil {
						t.Error("the file over max_artifact_mb came")
					}
				} else if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(want))
				}
			}
			if _, err := os.Lstat(filepath.Join(here, "link")); err == nil {
				t.Error("a link came")
			}
			if len(warnings) == 0 || !strings.Contains(warnings[0], "huge.bin (5 MB) is larger than max_artifact_mb and stays on target in "+dir) {
				t.Errorf("warnings: %q", warnings)
			}
			if _, err := os.Stat(filepath.Join(dir, "artifacts", "huge.bin")); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(dir, "plan.json")); err == nil {
				t.Error("the job directory has more than the artifacts")
			}
		})
	}
}

func put(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// H7: a copy that sends nothing is given up in these words, and nothing of it goes on at the host.
func TestSSHFetchStalls(t *testing.T) {
	t.Parallel()
	rig := hoststest.Get(t)
	home, err := hoststest.Home(hoststest.Bash)
	must(t, err)
	for _, transport := range []string{hosts.TransportNative, hosts.TransportOpenSSH} {
		t.Run(transport, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp(home, "potato-fetch-")
			must(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			put(t, filepath.Join(dir, "artifacts", "model.bin"), []byte("weights"))
			stuck := filepath.Join(dir, "python") // a disk that hangs after the first words
			put(t, stuck, []byte("#!/bin/sh\nread q\necho '{\"files\":1,\"bytes\":7,\"large\":[]}'\nexec sleep 600\n"))
			put(t, filepath.Join(dir, "plan.json"), []byte(`{"python":"`+stuck+`"}`))
			must(t, os.Chmod(stuck, 0o755))
			must(t, exec.Command("chown", "-R", hoststest.Bash, dir).Run())
			r := runners.NewSSH(runners.SSHOptions{
				Config: runnertest.Study(t, fmt.Sprintf("  backends:\n    box: {type: ssh, host: target, transport: %s}\n", transport)),
				Hosts:  hosts.Options{ConfigFile: rig.Config}, CopyStall: time.Second,
			})
			defer r.Close()
			j := runners.Job{Job: api.Job{RunID: "20261129T000000-000000"}, Backend: "box", Dir: t.TempDir(), Step: func(string) {}, Say: func(string) {}}
			_, err = r.Fetch(t.Context(), j, api.Handle{Backend: "box", Dir: dir, Host: "target"}, true)
			if wantCode(t, err, "copy_stalled"); api.AsError(err).Message != "The copy from target sent nothing for 1 s" {
				t.Errorf("got %v", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "artifacts", "model.bin")); err != nil {
				t.Errorf("the file is no longer on the host: %v", err)
			}
		})
	}
}
