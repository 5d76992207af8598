package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"

	"potato/api"
	"potato/project"
	"potato/runners"
	"potato/runners/hosts"
	"potato/runners/hosts/hoststest"
)

// measureCopy brings the model files of a run from a host as the server does after a run: log in, copy, check every file's
// digest. Beside it scp copies the same file, and tar through ssh the same folder.
func measureCopy(ctx context.Context, b *bench) (rows []row, err error) {
	rig, err := hoststest.Start()
	if err != nil {
		return nil, err
	}
	defer rig.Close()
	_, config, err := b.sshStudy("copy")
	if err != nil {
		return nil, err
	}
	c := copying{bench: b, rig: rig, config: config}
	big, err := newHostFiles("big", 1, 500_000_000)
	if err != nil {
		return nil, err
	}
	defer big.remove()
	many, err := newHostFiles("many", 2000, 50_000)
	if err != nil {
		return nil, err
	}
	defer many.remove()
	one := row{Name: "copy-big", What: "one file of 500 MB copied from a host, MB a second", Unit: "MB/s", Against: "scp", Bar: atLeast(0.8, "F2")}
	small := row{Name: "copy-many", What: "2,000 files of 50 kB copied from a host", Unit: "s", Against: "tar over ssh", Bar: atMost(1.2, "F2")}
	grown := row{Name: "copy-memory", What: "memory that the copy of 500 MB takes", Unit: "MB", Bar: atMost(50, "H7")}
	for i := range b.repeats + 1 {
		scp, err := timed(func() error { return c.scp(ctx, big) })
		if err != nil {
			return nil, err
		}
		before := heap()
		ours, err := timed(func() error { return c.fetch(ctx, big) })
		if err != nil {
			return nil, err
		}
		after := heap()
		tar, err := timed(func() error { return c.tar(ctx, many) })
		if err != nil {
			return nil, err
		}
		oursMany, err := timed(func() error { return c.fetch(ctx, many) })
		if err != nil {
			return nil, err
		}
		if i == 0 {
			continue // the files come into the disk cache
		}
		one.Peer, one.Ours = append(one.Peer, 500/scp.Seconds()), append(one.Ours, 500/ours.Seconds())
		small.Peer, small.Ours = append(small.Peer, tar.Seconds()), append(small.Ours, oursMany.Seconds())
		grown.Ours = append(grown.Ours, after-before)
		b.say("500 MB: scp %s, ours %s; 2,000 files: tar %s, ours %s; memory %+.1f MB", scp, ours, tar, oursMany, after-before)
	}
	return []row{one, small, grown}, nil
}

// heap is what this program has of the system for its heap, in MB; it never shrinks.
func heap() float64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapSys) / 1e6
}

type copying struct {
	*bench
	rig    *hoststest.Rig
	config *project.Config
}

// fetch copies as the server does, into a run's folder.
func (c copying) fetch(ctx context.Context, f hostFiles) error {
	s := runners.NewSSH(runners.SSHOptions{Config: c.config, Hosts: hosts.Options{ConfigFile: c.rig.Config}})
	dir := c.folder("run")
	defer os.RemoveAll(dir) //nolint:errcheck // the folder of all goes at the end
	none := func(string) {}
	job := runners.Job{Job: api.Job{RunID: "bench"}, Backend: "box", Dir: dir, Step: none, Say: none}
	here, err := s.Fetch(ctx, job, api.Handle{Dir: f.dir}, true)
	if err == nil && !here {
		err = errors.New("not all files came")
	}
	return errors.Join(err, s.Close())
}

func (c copying) scp(ctx context.Context, f hostFiles) error {
	to := c.folder("scp")
	defer os.RemoveAll(to) //nolint:errcheck // the folder of all goes at the end
	return client(ctx, c.rig, "scp", "-q", "-r", sshHost+":"+f.dir+"/artifacts", to)
}

func (c copying) tar(ctx context.Context, f hostFiles) error {
	to := c.folder("tar")
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(to) //nolint:errcheck // the folder of all goes at the end
	const script = `ssh -F "$1" "$2" "tar cf - -C '$3' ." | tar xf - -C "$4"`
	out, err := exec.CommandContext(ctx, "sh", "-c", script, "sh", c.rig.Config, sshHost, f.dir+"/artifacts", to).CombinedOutput()
	if err != nil {
		return fmt.Errorf("tar: %w: %s", err, out)
	}
	return nil
}

// hostFiles is a job directory on the host with artifacts of random bytes. It is not where the runner removes job
// directories, so that every copy finds it.
type hostFiles struct{ dir string }

func newHostFiles(name string, n, size int) (f hostFiles, err error) {
	home, err := hoststest.Home(hoststest.Quiet)
	if err != nil {
		return f, err
	}
	f.dir = filepath.Join(home, "bench-"+name+"-"+strconv.Itoa(os.Getpid()))
	artifacts := filepath.Join(f.dir, "artifacts")
	if err := os.MkdirAll(artifacts, 0o755); err != nil {
		return f, err
	}
	content := make([]byte, size)
	for i := range n {
		_, _ = rand.Read(content) // never fails
		if err := os.WriteFile(filepath.Join(artifacts, fmt.Sprintf("%04d.bin", i)), content, 0o644); err != nil {
			return f, err
		}
	}
	plan := fmt.Sprintf(`{"python":%q}`, hostPython)
	return f, errors.Join(os.WriteFile(filepath.Join(f.dir, "plan.json"), []byte(plan), 0o644), f.own())
}

func (f hostFiles) own() error {
	u, err := user.Lookup(hoststest.Quiet)
	if err != nil {
		return err
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return err
	}
	return os.Chown(f.dir, uid, -1)
}

func (f hostFiles) remove() { _ = os.RemoveAll(f.dir) }
