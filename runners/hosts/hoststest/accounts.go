package hoststest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The accounts of the tests, each with another login shell. Their files print a banner and limit threads, as those of
// clusters do.
const (
	Bash = "potatobash"
	Tcsh = "potatotcsh"
	Fish = "potatofish"
	None = "potatonone" // may log in, and gets no shell

	Quiet = "potatoquiet" // without any of that: for the side that others are measured by
)

var accounts = []struct{ name, shell, file, rc string }{
	{Bash, "/bin/bash", ".bashrc", "printf 'Welcome to the cluster!\\n\\033[1m{\"json\": \"noise\"}\\033[0m no newline'\nexport OMP_NUM_THREADS=1 FROM_RC=bash\nalias ls='ls --color'\n"},
	{Tcsh, "/bin/tcsh", ".cshrc", "echo 'Welcome to tcsh!'\nsetenv OMP_NUM_THREADS 1\nsetenv FROM_RC tcsh\n"},
	{Fish, "/usr/bin/fish", ".config/fish/config.fish", "echo 'Welcome to fish!'\nset -gx OMP_NUM_THREADS 1\nset -gx FROM_RC fish\n"},
	{None, "/usr/sbin/nologin", ".bashrc", ""},
	{Quiet, "/bin/sh", ".profile", ""},
}

func names() (all []string) {
	for _, a := range accounts {
		all = append(all, a.name)
	}
	return all
}

// makeAccounts makes what is missing of them. Several test programs may do so at once.
func makeAccounts() error {
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "potato-test-accounts.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer lock.Close() //nolint:errcheck // closing it is letting go
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return err
	}
	for _, a := range accounts {
		if _, err := os.Stat(a.shell); err != nil {
			return fmt.Errorf("the login shell %s is missing; install the packages openssh-server, tcsh and fish", a.shell)
		}
		if _, err := user.Lookup(a.name); err != nil {
			if out, err := exec.Command("useradd", "-m", "-s", a.shell, a.name).CombinedOutput(); err != nil {
				return fmt.Errorf("make the account %s: %w: %s", a.name, err, strings.TrimSpace(string(out)))
			}
			// An account that is locked is refused whatever its keys are.
			if out, err := exec.Command("usermod", "-p", "*", a.name).CombinedOutput(); err != nil {
				return fmt.Errorf("unlock the account %s: %w: %s", a.name, err, strings.TrimSpace(string(out)))
			}
		}
		if err := writeAs(a.name, a.file, a.rc); err != nil {
			return err
		}
	}
	return nil
}

// writeAs writes a file into an account's home.
func writeAs(account, name, text string) error {
	home, err := Home(account)
	if err != nil {
		return err
	}
	script := `umask 077; mkdir -p "$(dirname "$1")" && cat >"$1.$$" && mv "$1.$$" "$1"`
	cmd := exec.Command("setpriv", "--reuid", account, "--regid", account, "--init-groups", "/bin/sh", "-c", script, "sh", filepath.Join(home, name))
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("write %s of %s: %w: %s", name, account, err, out)
	}
	return nil
}

// Home is an account's home.
func Home(account string) (string, error) {
	u, err := user.Lookup(account)
	if err != nil {
		return "", err
	}
	return u.HomeDir, nil
}
