package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is what /proc says of one. Memory and rest are measured on Linux only.
type process struct {
	pid, parent int
	ticks       int // of CPU time, 10 ms each
	command     string
}

// tree lists a server's process and all that it started, of every generation.
func (s *server) tree() ([]process, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(paths) == 0 {
		return nil, errors.Join(errors.New("there is no /proc here; the figures need Linux"), err)
	}
	children := map[int][]process{}
	var found []process
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it ended since
		}
		p, err := parseStat(string(stat))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		children[p.parent] = append(children[p.parent], p)
		if p.pid == s.cmd.Process.Pid {
			found = append(found, p)
		}
	}
	for i := 0; i < len(found); i++ {
		found = append(found, children[found[i].pid]...)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has ended; its log is %s", s.cmd.Path, s.log)
	}
	return found, nil
}

// parseStat reads `pid (name) state ppid …`. The name may hold anything, the fields after it no spaces.
func parseStat(stat string) (process, error) {
	open, shut := strings.IndexByte(stat, '('), strings.LastIndexByte(stat, ')')
	if open < 1 || shut < open {
		return process{}, fmt.Errorf("cannot read %q", stat)
	}
	rest := strings.Fields(stat[shut+1:])
	const parent, user, system = 1, 11, 12
	if len(rest) <= system {
		return process{}, fmt.Errorf("cannot read %q", stat)
	}
	var n [4]int
	for i, field := range []string{strings.TrimSpace(stat[:open]), rest[parent], rest[user], rest[system]} {
		var err error
		if n[i], err = strconv.Atoi(field); err != nil {
			return process{}, err
		}
	}
	return process{pid: n[0], parent: n[1], ticks: n[2] + n[3], command: stat[open+1 : shut]}, nil
}

// settle waits until the server and what it started have used no CPU to speak of for half a second. With worker, a
// Python process has to be among them: the warm worker, its imports done.
func (s *server) settle(ctx context.Context, worker bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	before, last := -1, ""
	for {
		all, err := s.tree()
		if err != nil {
			return err
		}
		ticks, python, names := 0, false, []string{}
		for _, p := range all {
			ticks += p.ticks
			python = python || strings.HasPrefix(p.command, "python")
			names = append(names, p.command)
		}
		if before >= 0 && ticks-before <= 1 && ticks >= before && (python || !worker) {
			return nil
		}
		last = fmt.Sprintf("%s used %d ticks in half a second", strings.Join(names, ", "), ticks-before)
		before = ticks
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s does not come to rest: %s", s.cmd.Path, last)
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// resident adds up the resident memory of the server and what it started, in MB of a million bytes.
func (s *server) resident() (float64, error) {
	all, err := s.tree()
	if err != nil {
		return 0, err
	}
	var sum float64
	for _, p := range all {
		mb, err := memory(p.pid, "VmRSS")
		if err != nil {
			return 0, err
		}
		sum += mb
	}
	return sum, nil
}

// peak is the most that the server's own process ever had resident.
func (s *server) peak() (float64, error) { return memory(s.cmd.Process.Pid, "VmHWM") }

func memory(pid int, key string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, key+":"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			return kb * 1024 / 1e6, err
		}
	}
	return 0, fmt.Errorf("/proc/%d/status has no %s", pid, key)
}
