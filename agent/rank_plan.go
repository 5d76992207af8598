package agent

import (
	"cmp"
	"context"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"potato/api"
)

// rankPlan is the place of this node's ranks in the whole job. Every node has the same number of them.
type rankPlan struct {
	nodes, node int
	local       int // ranks on this node
	addr, port  string
}

func (p rankPlan) world() int { return p.nodes * p.local }

// planRanks reads from the scheduler's variables how many ranks there are: one for each GPU that this node has, or
// perNode.
func planRanks(getenv func(string) string, perNode int) (rankPlan, error) {
	p := rankPlan{
		nodes: max(1, number(cmp.Or(getenv("SLURM_NNODES"), getenv("SLURM_JOB_NUM_NODES")))),
		node:  number(getenv("SLURM_NODEID")),
		local: max(1, perNode),
	}
	if gpus := countGPUs(getenv("CUDA_VISIBLE_DEVICES")); gpus > 0 {
		p.local = gpus
	}
	if p.node >= p.nodes {
		return p, api.Invalidf("usage", "SLURM_NODEID is %d, but the job has %d nodes", p.node, p.nodes)
	}
	return p, nil
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// countGPUs counts the entries of CUDA_VISIBLE_DEVICES: indexes, or names that begin with GPU- or MIG-. CUDA itself
// stops at the first that it does not know.
func countGPUs(visible string) int {
	n := 0
	for entry := range strings.SplitSeq(visible, ",") {
		entry = strings.TrimSpace(entry)
		_, err := strconv.ParseUint(entry, 10, 31)
		if err != nil && !strings.HasPrefix(entry, "GPU-") && !strings.HasPrefix(entry, "MIG-") {
			break
		}
		n++
	}
	return n
}

// meet settles where the ranks find each other; MASTER_ADDR and MASTER_PORT that are set already stay.
func (p *rankPlan) meet(getenv func(string) string) (err error) {
	p.addr, p.port = getenv("MASTER_ADDR"), getenv("MASTER_PORT")
	if p.addr == "" {
		p.addr = "127.0.0.1"
		if p.nodes > 1 {
			if p.addr, err = firstNode(cmp.Or(getenv("SLURM_JOB_NODELIST"), getenv("SLURM_NODELIST"))); err != nil {
				return err
			}
		}
	}
	if p.port == "" {
		p.port, err = p.freePort(number(getenv("SLURM_JOB_ID")))
	}
	return err
}

// freePort is one that all nodes come to: where they cannot ask each other, it follows from the job's number. It is below
// the ports that systems give out by themselves.
func (p *rankPlan) freePort(job int) (string, error) {
	if p.nodes > 1 {
		return strconv.Itoa(10000 + job%20000), nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "", err
	}
	return port, l.Close()
}

// firstNode is the first of a list such as node[01-04], which only scontrol can take apart.
func firstNode(list string) (string, error) {
	if !strings.Contains(list, "[") && list != "" {
		first, _, _ := strings.Cut(list, ",")
		return first, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "scontrol", "show", "hostnames", list).Output()
	names := strings.Fields(string(out))
	if err != nil || len(names) == 0 {
		return "", api.Unavailablef("start_failed",
			"The name of the job's first node is not known: scontrol show hostnames %s failed; set MASTER_ADDR under `env`", list).WithCause(err)
	}
	return names[0], nil
}
