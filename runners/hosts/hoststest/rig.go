package hoststest

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Rig is a set of ssh servers with a configuration for the client that names them:
//
//	target target-tcsh target-fish target-none target-quiet   one server, another account each
//	jumped                                                    the same through a jump host with another host key
//	commanded                                                 the same through a ProxyCommand
//	passwords                                                 a server that takes no keys
//	forbidden                                                 a server that forwards nothing
//	quick                                                     a server that notices lost clients within seconds
//	login2                                                    a server on a machine of another name, with the same storage
//	either                                                    target or login2, as Lead says: two login nodes of one cluster
type Rig struct {
	Dir    string
	Config string
	Known  string
	ports  map[string]int
	stop   []func()
}

var running *Rig

// Main runs a package's tests with one Rig. Where there can be none, tests that ask for it are skipped, or fail with CI=true.
func Main(run func() int) int {
	rig, err := Start()
	if err != nil {
		errMissing = err
	} else {
		running = rig
		defer rig.Close()
	}
	return run()
}

var errMissing = errors.New("the test program's TestMain does not call hoststest.Main")

// Get is the package's Rig.
func Get(tb testing.TB) *Rig {
	tb.Helper()
	if running == nil {
		if os.Getenv("CI") == "true" {
			tb.Fatalf("no ssh servers: %v", errMissing)
		}
		tb.Skipf("no ssh servers: %v", errMissing)
	}
	return running
}

const sshd = "/usr/sbin/sshd" // it insists on being called by its whole path

// Start makes a Rig; whoever is no test program closes it.
func Start() (*Rig, error) {
	if os.Getuid() != 0 {
		return nil, errors.New("they have to be started as root")
	}
	if _, err := os.Stat(sshd); err != nil {
		return nil, fmt.Errorf("%w; install the package openssh-server", err)
	}
	if err := makeAccounts(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "potato-sshd-")
	if err != nil {
		return nil, err
	}
	r := &Rig{Dir: dir, Config: filepath.Join(dir, "config"), Known: filepath.Join(dir, "known_hosts"), ports: map[string]int{}}
	if err := errors.Join(os.Chmod(dir, 0o755), os.MkdirAll("/run/sshd", 0o755), r.makeKeys(), r.startServers(), r.writeConfig()); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

func (r *Rig) path(name string) string { return filepath.Join(r.Dir, name) }

func (r *Rig) makeKeys() error {
	for _, k := range [][]string{
		{"host", "ed25519", ""}, {"hostecdsa", "ecdsa", ""}, {"hostjump", "ed25519", ""}, {"client", "ed25519", ""}, {"stranger", "ed25519", ""},
		{"locked", "ed25519", "secret"}, {"authority", "ed25519", ""}, {"certified", "ed25519", ""},
	} {
		if err := keygen("-q", "-t", k[1], "-N", k[2], "-C", k[0], "-f", r.path(k[0])); err != nil {
			return err
		}
	}
	who := strings.Join(names(), ",")
	if err := keygen("-q", "-s", r.path("authority"), "-I", "test", "-n", who, r.path("certified.pub")); err != nil {
		return err
	}
	var allowed []byte
	for _, name := range []string{"client.pub", "locked.pub"} {
		key, err := os.ReadFile(r.path(name))
		if err != nil {
			return err
		}
		allowed = append(allowed, key...)
	}
	return os.WriteFile(r.path("authorized_keys"), allowed, 0o644)
}

func keygen(args ...string) error {
	if out, err := exec.Command("ssh-keygen", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ssh-keygen: %w: %s", err, out)
	}
	return nil
}

func (r *Rig) startServers() error {
	for _, s := range []struct{ name, key, more string }{
		{"target", "host", "HostKey " + r.path("hostecdsa")},
		{"jump", "hostjump", ""},
		{"passwords", "host", "PasswordAuthentication yes\nPubkeyAuthentication no"},
		{"forbidden", "host", "AllowStreamLocalForwarding no\nAllowTcpForwarding no"},
		{"quick", "host", "ClientAliveInterval 1\nClientAliveCountMax 2"},
		{"login2", "host", ""},
	} {
		if err := r.Serve(s.name, s.key, s.more); err != nil {
			return err
		}
	}
	return r.Lead("target")
}

// Lead says where new connections to the host "either" lead: to "target" or "login2".
func (r *Rig) Lead(server string) error {
	return os.WriteFile(r.path("either"), []byte(strconv.Itoa(r.ports[server])), 0o600)
}

// Serve starts one more server, with a host key of the Rig and lines of its own for its configuration.
func (r *Rig) Serve(name, hostKey, more string) error {
	port, err := freePort()
	if err != nil {
		return err
	}
	config := fmt.Sprintf(`%s
ListenAddress 127.0.0.1
Port %d
HostKey %s
PidFile none
AuthorizedKeysFile %s
TrustedUserCAKeys %s
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin no
AllowUsers %s
Subsystem sftp internal-sftp
PrintMotd no
LogLevel VERBOSE
MaxStartups 100
MaxSessions 20
`, more, port, r.path(hostKey), r.path("authorized_keys"), r.path("authority.pub"), strings.Join(names(), " "))
	file := r.path(name + ".conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return err
	}
	argv := []string{sshd, "-D", "-f", file, "-E", r.path(name + ".log")}
	if name == "login2" {
		argv = append([]string{"unshare", "--uts", "/bin/sh", "-c", `hostname "$0" && exec "$@"`, name}, argv...)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = childAttr()
	if err := cmd.Start(); err != nil {
		return err
	}
	r.stop = append(r.stop, func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	r.ports[name] = port
	return awaitPort(port, r.path(name+".log"))
}

// Port is a server's port on 127.0.0.1.
func (r *Rig) Port(name string) int { return r.ports[name] }

// Key is the path of one of the keys client, stranger, locked, certified, host, hostjump.
func (r *Rig) Key(name string) string { return r.path(name) }

// Log is what a server has logged.
func (r *Rig) Log(name string) string {
	text, _ := os.ReadFile(r.path(name + ".log"))
	return string(text)
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

func awaitPort(port int, log string) error {
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			return conn.Close()
		}
		if time.Now().After(end) {
			text, _ := os.ReadFile(log)
			return fmt.Errorf("no sshd at %s: %w: %s", addr, err, text)
		}
	}
}

// Close ends the servers.
func (r *Rig) Close() {
	for _, stop := range r.stop {
		stop()
	}
	_ = os.RemoveAll(r.Dir)
}
