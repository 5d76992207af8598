package agent

import (
	"os"
	"path/filepath"
	"time"

	"potato/api"
)

// owner names the agent in charge of a job directory. An adopter replaces it, and an agent that finds another name in
// it leaves quietly. Its time of change is the lease that the shim watches.
type owner struct {
	Lease  string `json:"lease"`
	Host   string `json:"host"`
	BootID string `json:"boot_id"`
	Pid    int    `json:"pid"`
	Epoch  int64  `json:"epoch"`
}

// takeOver makes this agent the owner, with a higher epoch than anyone before.
func takeOver(dir string, job api.Job) (owner, error) {
	var before owner
	readJSON(filepath.Join(dir, ownerFile), &before)
	o := owner{Lease: job.Lease, Host: hostname(), BootID: bootID(), Pid: os.Getpid(), Epoch: before.Epoch + 1}
	return o, writeJSON(filepath.Join(dir, ownerFile), o, false)
}

// named reports whether the job directory still says so. A file that cannot be read for the moment says nothing.
func (o owner) named(dir string) bool {
	var now owner
	return !readJSON(filepath.Join(dir, ownerFile), &now) || now == o
}

func (o owner) touch(dir string) error {
	now := time.Now()
	return os.Chtimes(filepath.Join(dir, ownerFile), now, now)
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "localhost"
	}
	return name
}
