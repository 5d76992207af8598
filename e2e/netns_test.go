package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// A machine is a network namespace: loopback, address and ports of its own, one cable to here.
type machine struct {
	name  string
	Here  string // this machine's address on the cable
	It    string
	cable string // its end there
}

// newMachine lays the cable number n, from 1.
func newMachine(t *testing.T, n int) machine {
	t.Helper()
	_, err := exec.LookPath("ip")
	need(t, err == nil && os.Geteuid() == 0, "root and ip(8), to make a network namespace")
	m := machine{
		name: fmt.Sprintf("potato-%d-%d", os.Getpid(), n),
		Here: fmt.Sprintf("10.99.%d.1", n), It: fmt.Sprintf("10.99.%d.2", n),
	}
	near, far := fmt.Sprintf("pt%d-%d", os.Getpid()%100000, n), fmt.Sprintf("pf%d-%d", os.Getpid()%100000, n)
	m.cable = far
	command(t, "", "ip", "netns", "add", m.name)
	t.Cleanup(func() { _ = exec.Command("ip", "netns", "del", m.name).Run() })
	command(t, "", "ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", m.name)
	t.Cleanup(func() { _ = exec.Command("ip", "link", "del", near).Run() })
	command(t, "", "ip", "addr", "add", m.Here+"/24", "dev", near)
	command(t, "", "ip", "link", "set", near, "up")
	command(t, "", "ip", "-n", m.name, "addr", "add", m.It+"/24", "dev", far)
	command(t, "", "ip", "-n", m.name, "link", "set", far, "up")
	command(t, "", "ip", "-n", m.name, "link", "set", "lo", "up")
	return m
}

// unplug cuts the machine off, plug joins it again.
func (m machine) unplug(t *testing.T) {
	command(t, "", "ip", "-n", m.name, "link", "set", m.cable, "down")
}
func (m machine) plug(t *testing.T) { command(t, "", "ip", "-n", m.name, "link", "set", m.cable, "up") }

// program is a command that runs on the machine.
func (m machine) program(name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", m.name, name}, args...)...)
}
