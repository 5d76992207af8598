package agent

import "io"

// Exec is the body of the hidden command "exec", the shim between agent and worker; its result is the exit status.
// It reads what to start as one JSON line from stdin, so that nothing shows in a process list.
func Exec(stdin io.Reader) int { panic("unfinished") }
