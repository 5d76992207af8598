package agentcmd

import "io"

// Screen is a screen of a given width, for the tests.
type Screen = screen

// NewScreenOf makes one.
func NewScreenOf(w io.Writer, width int) *Screen {
	return &screen{w: w, width: func() int { return width }}
}

// The methods that the agent uses.
var (
	Report = (*screen).report
	Close  = (*screen).close
)

// The rest of what the tests look at.
var (
	ActivePython = activePython
	Attended     = attended
	UnitWord     = unitWord
)
