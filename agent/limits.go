package agent

import (
	"os"
	"time"
)

// lease watches the file that the agent touches while it lives. Only changes count, never the file's time itself, so
// clocks that differ or jump do no harm.
type lease struct {
	file    string
	timeout time.Duration
	last    os.FileInfo
	looked  time.Time
	silence time.Duration
}

func newLease(job shimJob) *lease {
	l := &lease{file: job.LeaseFile, timeout: seconds(job.LeaseTimeoutS), looked: time.Now()}
	l.last, _ = os.Stat(l.file)
	return l
}

// lost reports whether the agent has been silent for too long. A look adds little to the silence however late it comes:
// when the whole machine stood still, the agent had no chance to speak either.
func (l *lease) lost(now time.Time) bool {
	if l.file == "" || l.timeout <= 0 {
		return false
	}
	l.silence += min(now.Sub(l.looked), 4*watchEvery)
	l.looked = now
	info, err := os.Stat(l.file)
	if err == nil && (l.last == nil || !info.ModTime().Equal(l.last.ModTime()) || !os.SameFile(info, l.last)) {
		l.last, l.silence = info, 0
	}
	return l.silence > l.timeout
}

// meter measures the memory of the worker's tree against its limit.
type meter struct {
	limitMB int64
	peakMB  float64
	next    time.Time
}

// over reports what the tree uses when that is more than allowed. Resident sizes count shared pages several times and
// mapped files with them, so they only raise the suspicion.
func (m *meter) over(now time.Time) (float64, bool) {
	if m.limitMB <= 0 || now.Before(m.next) {
		return 0, false
	}
	began := time.Now()
	all := measured(tree(os.Getpid(), ""))
	var used float64
	for _, p := range all {
		used += p.rssMB
	}
	if used > float64(m.limitMB) {
		used = 0
		for _, p := range all {
			used += ownMB(p)
		}
	}
	m.peakMB = max(m.peakMB, used)
	m.next = began.Add(50 * time.Since(began)) // a long process table must not cost more than 2 % of a core
	return used, used > float64(m.limitMB)
}
