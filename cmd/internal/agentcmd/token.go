package agentcmd

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"potato/api"
)

const (
	tokenVar   = "POTATO_TRAINING_TOKEN"
	tokenFDVar = "POTATO_TOKEN_FD" // between the program and itself: where the token is to be read from
	longest    = 1000
)

// takeToken takes the token out of the environment, so that no process that is started later gets it. The kernel shows
// the environment that a program was started with in /proc/PID/environ for as long as it runs, to every process of the
// same user; so the program starts itself anew, once, without the token there, and gets it from a pipe (T39).
func takeToken() (string, error) {
	if at, again := os.LookupEnv(tokenFDVar); again {
		return receiveToken(at)
	}
	token, given := os.LookupEnv(tokenVar)
	if !given {
		return "", nil
	}
	if err := os.Unsetenv(tokenVar); err != nil {
		return "", fmt.Errorf("take the token: %w", err)
	}
	if len(token) > longest {
		return "", notAToken(tokenVar)
	}
	self, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("take the token: %w", err)
	}
	if _, err := w.WriteString(token); err != nil { // it fits: a pipe holds more
		return "", fmt.Errorf("take the token: %w", err)
	}
	if err := w.Close(); err != nil {
		return "", fmt.Errorf("take the token: %w", err)
	}
	if _, err := unix.FcntlInt(r.Fd(), unix.F_SETFD, 0); err != nil { // it is to survive the exec
		return "", fmt.Errorf("take the token: %w", err)
	}
	env := append(os.Environ(), tokenFDVar+"="+strconv.Itoa(int(r.Fd())))
	return "", fmt.Errorf("start this program anew without the token in its environment: %w", syscall.Exec(self, os.Args, env))
}

func receiveToken(at string) (string, error) {
	if err := os.Unsetenv(tokenFDVar); err != nil {
		return "", fmt.Errorf("take the token: %w", err)
	}
	fd, err := strconv.Atoi(at)
	if err != nil || fd < 3 {
		return "", api.Invalidf("token", "%s is set, which only this program does for itself", tokenFDVar).WithHint("unset it")
	}
	f := os.NewFile(uintptr(fd), "token")
	b, err := io.ReadAll(io.LimitReader(f, longest+1))
	if err := errors.Join(err, f.Close()); err != nil {
		return "", fmt.Errorf("take the token: %w", err)
	}
	return string(b), nil
}

// readToken reads the token from a file that nobody else may read.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", api.Invalidf("token_file", "--token-file %s cannot be read: %v", path, errors.Unwrap(err)).WithCause(err)
	}
	defer f.Close() //nolint:errcheck // only read from
	st, err := f.Stat()
	if err != nil {
		return "", api.Invalidf("token_file", "--token-file %s cannot be read: %v", path, errors.Unwrap(err)).WithCause(err)
	}
	if !st.Mode().IsRegular() && st.Mode()&fs.ModeNamedPipe == 0 {
		return "", api.Invalidf("token_file", "--token-file %s is not a file", path)
	}
	if open := st.Mode().Perm() & 0o077; st.Mode().IsRegular() && (open&0o007 != 0 || open != 0 && !isCredential(path)) {
		return "", api.Invalidf("token_file", "--token-file %s can be read by other users of this machine, so its token may be known to them", path).
			WithHint("chmod 600 %s, and register the backend again for a new token", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, longest+2))
	if err != nil {
		return "", api.Invalidf("token_file", "--token-file %s cannot be read: %v", path, errors.Unwrap(err)).WithCause(err)
	}
	token := strings.TrimSpace(string(b))
	return token, checkToken(token, "--token-file "+path)
}

// isCredential reports whether systemd has put the file there: it lets in by an access list, which looks like the group.
func isCredential(path string) bool {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	return dir != "" && filepath.Dir(path) == filepath.Clean(dir)
}

// checkToken refuses what could not be sent; what is valid the server knows.
func checkToken(token, where string) error {
	if token == "" || len(token) > longest || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return notAToken(where)
	}
	return nil
}

func notAToken(where string) error {
	return api.Invalidf("token", "%s holds no token", where).
		WithHint("a token is the one line of letters and digits that `potato training register` printed")
}

func noToken(backend string) error {
	return api.Invalidf("token", "there is no token: neither POTATO_TRAINING_TOKEN nor --token-file is given").
		WithHint("run `potato training register %s config.yaml` on the server and do what it prints", backend)
}
