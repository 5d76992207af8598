package slurmtest

import (
	"bytes"
	"os"
	"strings"
	"text/template"
)

// confTemplate is a slurm.conf for a test: everything is looked at each second and nothing waits longer than it must.
var confTemplate = template.Must(template.New("slurm.conf").Parse(`ClusterName=rig
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={{.Port}}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={{.Dir}}/munge/m.sock,cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation={{.Dir}}/state
SlurmdSpoolDir={{.Dir}}/spool/%n
SlurmctldPidFile={{.Dir}}/pids/slurmctld
SlurmdPidFile={{.Dir}}/pids/slurmd.%n
SlurmctldLogFile={{.Dir}}/log/slurmctld.log
SlurmdLogFile={{.Dir}}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={{.Dir}}/log/jobcomp.txt
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SwitchType=switch/none
MpiDefault=none
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=0
PriorityType=priority/basic
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmctldTimeout=10
SlurmdTimeout=10
InactiveLimit=0
KillWait=2
MinJobAge=600
OverTimeLimit=0
CompleteWait=0
TCPTimeout=5
MessageTimeout=10
UnkillableStepTimeout=20
BatchStartTimeout=10
PropagateResourceLimits=NONE
PrologFlags=NoHold
JobRequeue=1
MaxTasksPerNode=16
EnforcePartLimits=NO
GresTypes=gpu
DefMemPerCPU=100
{{range .Nodes}}NodeName={{.Name}} NodeHostname=localhost NodeAddr=127.0.0.1 Port={{.Port}} CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=2000 Gres=gpu:2 Feature={{.Name}} State=UNKNOWN
{{end}}PartitionName=short Nodes=ALL Default=YES MaxTime=01:00:00 DefaultTime=00:10:00 PriorityTier=10 State=UP
PartitionName=low Nodes=ALL MaxTime=2-00:00:00 PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=lowc Nodes=ALL MaxTime=2-00:00:00 PriorityTier=1 PreemptMode=CANCEL State=UP
PartitionName=down Nodes=ALL State=DOWN
`))

type node struct {
	Name string
	Port int
}

func render(dir string, names []string, ports []int, extra string) ([]byte, error) {
	var nodes []node
	for i, name := range names {
		nodes = append(nodes, node{name, ports[i+1]})
	}
	var b bytes.Buffer
	err := confTemplate.Execute(&b, map[string]any{"Dir": dir, "Port": ports[0], "Nodes": nodes})
	return overridden(b.Bytes(), extra), err
}

// overridden puts the lines of extra in place of those with the same keys.
func overridden(conf []byte, extra string) []byte {
	keys := map[string]bool{}
	for line := range strings.Lines(extra) {
		if key, _, ok := strings.Cut(line, "="); ok && key != "NodeName" && key != "PartitionName" {
			keys[key] = true
		}
	}
	var kept []byte
	for line := range bytes.Lines(conf) {
		if key, _, _ := bytes.Cut(line, []byte("=")); !keys[string(key)] {
			kept = append(kept, line...)
		}
	}
	return append(kept, extra+"\n"...)
}

// Cgroups are lines that have the kernel watch the memory of jobs, where HasCgroups.
const Cgroups = "ProctrackType=proctrack/cgroup\nTaskPlugin=task/cgroup\nJobAcctGatherType=jobacct_gather/cgroup\nJobAcctGatherParams=NoShared\n"

const cgroupConf = "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\nConstrainRAMSpace=yes\nConstrainSwapSpace=yes\n"

// HasCgroups reports whether this machine has the control groups that such a cluster needs, those of version 1.
func HasCgroups() bool {
	about, err := os.Stat("/sys/fs/cgroup/memory")
	return err == nil && about.IsDir()
}
