package agent

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// queueRow is a job as squeue lists it.
type queueRow struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Nodes   string `json:"nodes,omitempty"`
	Start   string `json:"start,omitempty"` // expected, of a job that waits
	Name    string `json:"name,omitempty"`
	Cluster string `json:"cluster,omitempty"`
	Dir     string `json:"dir,omitempty"`
}

// queueAnswer is what squeue said last of all jobs of this account, and when. It says nothing of jobs that were
// submitted after Answered.
type queueAnswer struct {
	Asked    time.Time     `json:"asked"`    // last, with or without success
	Answered time.Time     `json:"answered"` // when that was asked which Rows answer
	Took     time.Duration `json:"took"`
	Error    string        `json:"error,omitempty"` // of the last time; empty: Rows are its answer
	Silent   time.Time     `json:"silent,omitzero"` // since when there was no answer
	Rows     []queueRow    `json:"rows"`
}

const (
	squeueFormat = "%i|%T|%r|%N|%S|%j|%Z" // the reason may hold blanks and commas, the folder anything
	shortFormat  = "%i|%T|%r"             // what the oldest squeue knows
	longestTick  = time.Minute
)

// squeue asks the scheduler's queue, once a tick for all agents of this account on this host: the answer lies in a file
// of a folder that they share, and whoever finds it too old asks for all of them (T19).
type squeue struct {
	dir      string
	cmd      slurmCommands
	interval time.Duration
	jitter   float64 // so that agents on several hosts do not ask in step
	quick    time.Duration

	mu   sync.Mutex
	own  map[string]queueAnswer // by cluster, where the answers cannot be shared
	read map[string]readAnswer  // by cluster, so that a file that has not changed is not read again
}

type readAnswer struct {
	about os.FileInfo
	queueAnswer
}

func newSqueue(dir string, cmd slurmCommands, interval, quick time.Duration) *squeue {
	return &squeue{dir: dir, cmd: cmd, interval: interval, jitter: 1 + 0.1*rand.Float64(), quick: min(quick, interval), own: map[string]queueAnswer{}, read: map[string]readAnswer{}}
}

func (q *squeue) path(cluster string) string {
	return filepath.Join(q.dir, "squeue-"+cutTo(hostname(), 100)+"-"+strings.ReplaceAll(cluster, "/", "_")+".json")
}

// ask returns an answer no older than a tick, or than after when that is not the last quick moment; or the last one when
// somebody is just asking. ids are asked for one by one where squeue does not know our options.
func (q *squeue) ask(ctx context.Context, cluster string, after time.Time, ids ...string) queueAnswer {
	a := q.last(cluster)
	if !q.due(a, after) {
		return a
	}
	unlock, mine := q.lock(cluster)
	if !mine {
		return a
	}
	defer unlock()
	if a = q.last(cluster); !q.due(a, after) {
		return a
	}
	return q.renew(ctx, cluster, a, ids)
}

func (q *squeue) due(a queueAnswer, after time.Time) bool {
	age := time.Since(a.Asked)
	return age < -time.Second || age >= q.tick(a.Took) || after.After(a.Asked) && age >= q.quick // the clock may have been set back
}

// tick is the time between two questions. A scheduler that is slow to answer is asked less often.
func (q *squeue) tick(took time.Duration) time.Duration {
	return time.Duration(float64(max(q.interval, min(10*took, longestTick))) * q.jitter)
}

func (q *squeue) last(cluster string) queueAnswer {
	q.mu.Lock()
	defer q.mu.Unlock()
	if a, ok := q.own[cluster]; ok {
		return a
	}
	about, err := os.Stat(q.path(cluster))
	if err != nil {
		return queueAnswer{}
	}
	r := q.read[cluster]
	// It is replaced by rename, so another file is another answer.
	if r.about == nil || !os.SameFile(r.about, about) || !r.about.ModTime().Equal(about.ModTime()) {
		r = readAnswer{about: about}
		readJSON(q.path(cluster), &r.queueAnswer)
		q.read[cluster] = r
	}
	return r.queueAnswer
}

// lock keeps two agents from asking at once. It goes with its process. Storage that knows no locks keeps nobody from asking.
func (q *squeue) lock(cluster string) (unlock func(), mine bool) {
	if err := os.MkdirAll(q.dir, 0o700); err != nil {
		return func() {}, true
	}
	f, err := os.OpenFile(q.path(cluster)+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return func() {}, true
	}
	unlock = func() { _ = f.Close() }
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err == syscall.EWOULDBLOCK {
		unlock()
		return nil, false
	}
	return unlock, true
}

func (q *squeue) renew(ctx context.Context, cluster string, before queueAnswer, ids []string) queueAnswer {
	a := queueAnswer{Asked: time.Now(), Answered: before.Answered, Silent: before.Silent, Rows: before.Rows}
	said, err := q.cmd.runOn(ctx, cluster, "squeue", "-h", "-a", "-t", "all", "-u", strconv.Itoa(os.Getuid()), "-o", squeueFormat)
	shared := true
	if err == nil && said.code != 0 && unknownOption(said.stderr) {
		said, err = q.oneByOne(ctx, cluster, ids)
		shared = false
	}
	a.Took = time.Since(a.Asked)
	switch {
	case ctx.Err() != nil: // we leave, which is nobody's silence
		return before
	case err != nil:
		a.Error = err.Error()
	case said.code != 0:
		a.Error = "squeue: " + cut(words(said), 300)
	default:
		a.Answered, a.Silent, a.Rows = a.Asked, time.Time{}, slices.DeleteFunc(parseQueue(said.stdout), queueRow.isForeign)
	}
	if a.Error != "" && a.Silent.IsZero() {
		a.Silent = a.Asked
	}
	if !shared || writeJSON(q.path(cluster), a, false) != nil {
		q.mu.Lock()
		q.own[cluster] = a
		q.mu.Unlock()
	}
	return a
}

func unknownOption(stderr string) bool {
	return containsAny(stderr, "unrecognized option", "invalid option", "Invalid job format", "nrecognized argument")
}

// oneByOne asks as the oldest squeue can be asked (T18). A job that it does not know is not listed, as by the newer ones.
func (q *squeue) oneByOne(ctx context.Context, cluster string, ids []string) (slurmAnswer, error) {
	var all slurmAnswer
	for _, id := range ids {
		a, err := q.cmd.runOn(ctx, cluster, "squeue", "-h", "-j", id, "-o", shortFormat)
		if err != nil {
			return a, err
		}
		if a.code != 0 && !strings.Contains(a.stderr, "Invalid job id") {
			return a, nil
		}
		all.stdout += a.stdout
	}
	return all, nil
}

// parseQueue reads the lines of squeue and passes over what is none. With -M each cluster's begin with its name.
func parseQueue(text string) []queueRow {
	rows := []queueRow{}
	cluster := ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if name, ok := strings.CutPrefix(line, "CLUSTER: "); ok {
			cluster = strings.TrimSpace(name)
			continue
		}
		f := strings.SplitN(line, "|", 7)
		if len(f) < 3 || !isJobID(f[0]) {
			continue
		}
		f = append(f, "", "", "", "")
		rows = append(rows, queueRow{ID: f[0], State: f[1], Reason: f[2], Nodes: known(f[3]), Start: known(f[4]), Name: f[5], Dir: f[6], Cluster: cluster})
	}
	return rows
}

// isForeign reports a job of the account's that is no run: there may be thousands.
func (r queueRow) isForeign() bool { return r.Name != "" && !strings.HasPrefix(r.Name, namePrefix) }

func known(s string) string {
	if s == "N/A" || s == "(null)" {
		return ""
	}
	return s
}

func isJobID(s string) bool {
	n, err := strconv.ParseUint(s, 10, 64)
	return err == nil && n > 0
}

func (a queueAnswer) row(id string) (queueRow, bool) {
	for _, r := range a.Rows {
		if r.ID == id {
			return r, true
		}
	}
	return queueRow{}, false
}
