package agent

import (
	"cmp"
	"fmt"
	"strings"
)

// pendingVerdict says what becomes of a job that waits.
type pendingVerdict string

const (
	pendingWait  pendingVerdict = "wait"  // it starts by itself
	pendingAct   pendingVerdict = "act"   // it starts once someone has done something
	pendingNever pendingVerdict = "never" // as it was asked for, it does not start
)

// pendingReason is a reason for which SLURM lets a job wait, as people read it.
type pendingReason struct {
	Words   string // a sentence: what it waits for
	Verdict pendingVerdict
	Hint    string // what to do, if anything
}

// pendingReasons are the reasons that squeue's %r prints, of Slurm 22.05 to 24.11; the limits of accounts and QOS are in
// slurm_reasons_limits.go. JOBID stands for the job's number.
var pendingReasons = map[string]pendingReason{
	// It has its turn.
	"None":                 {"The scheduler has not looked at the job yet", pendingWait, "nothing to do; the next round of the scheduler says more"},
	"Priority":             {"Jobs of higher priority come first", pendingWait, "nothing to do; a shorter `time` lets the scheduler fit the job into gaps; `sprio -j JOBID` shows its priority, `sshare` the fair share that it comes from"},
	"Resources":            {"It is its turn, and it waits until enough nodes, GPUs or memory are free", pendingWait, "nothing to do; asking for less (`gres`, `cpus_per_task`, `mem`, `time`) starts it sooner"},
	"BeginTime":            {"Its earliest start has not come yet", pendingWait, "nothing to do; a job that was requeued waits about two minutes like this; `begin` in `sbatch_args` sets a later start"},
	"Dependency":           {"It waits for another job to end", pendingWait, "nothing to do; `scontrol show job JOBID` names the job under Dependency"},
	"Licenses":             {"All the licences that it needs are in use", pendingWait, "nothing to do; `scontrol show licenses` shows how many there are"},
	"JobArrayTaskLimit":    {"As many tasks of its job array run as it allows at a time", pendingWait, "nothing to do; it starts when one of them ends"},
	"Cleaning":             {"Its last attempt is still being cleaned up", pendingWait, "nothing to do; it starts anew after that"},
	"Prolog":               {"Its nodes are being prepared", pendingWait, "nothing to do; ask the cluster's admins if it takes more than some minutes"},
	"FedJobLock":           {"The clusters of the federation settle which of them runs it", pendingWait, "nothing to do; ask the cluster's admins if it takes more than some minutes"},
	"SchedDefer":           {"The cluster leaves every start to the scheduler's next round", pendingWait, "nothing to do; remove `--immediate` from `sbatch_args` if it is there"},
	"MpiPortsBusy":         {"All the ports for MPI on its nodes are in use", pendingWait, "nothing to do; it starts when another job ends"},
	"BurstBufferResources": {"There is no room in the burst buffer", pendingWait, "nothing to do; it starts when other jobs free theirs"},
	"BurstBufferStageIn":   {"Its data is being copied into the burst buffer", pendingWait, "nothing to do; it starts after that"},
	"MaxPoweredUpNodes":    {"As many nodes are switched on as the cluster allows", pendingWait, "nothing to do; it starts when other jobs end"},
	"PowerNotAvail":        {"The cluster has no power to spare for it", pendingWait, "nothing to do; it starts when other jobs end"},
	"PowerReserved":        {"The cluster's power is reserved for others at that time", pendingWait, "a shorter `time` may end before that"},
	"BlockFreeAction":      {"A block of nodes is being freed", pendingWait, "nothing to do; it starts after that"},
	"Constraints":          {"No nodes with what it asks for can be had at this time", pendingWait, "see with `sinfo -N -l` whether such nodes are up; ask for other ones (`constraint`, `gres`, `nodelist`) if they are not"},

	// A reservation, maintenance or nodes that are away; ReqNodeNotAvail and its details are below.
	"Reservation": {"Its reservation has not begun or has no room", pendingWait, "see `scontrol show reservation` for its times and nodes, or remove `reservation`"},
	"NodeDown":    {"A node that it needs is down", pendingWait, "it starts when the node is back; ask for other nodes (`nodelist`, `exclude`) if that takes long; `sinfo -R` gives the reason"},
	"Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions": {
		"The nodes it needs are down, drained or kept for partitions of higher priority", pendingWait, "see `sinfo -R` for nodes that are away and why; another `partition` or fewer `nodes` may start sooner"},
	"FrontEndDown":      {"No front-end node is up to start it", pendingAct, "tell the cluster's admins"},
	"QOSUsageThreshold": {"The account's fair share is below what the QOS asks for", pendingWait, "it recovers as the account uses less (`sshare` shows it); another `qos` may start at once"},

	// Someone has to do something.
	"JobHeldUser":                             {"It is held by its owner", pendingAct, "release it with `scontrol release JOBID`"},
	"JobHeldAdmin":                            {"It is held by the cluster's admins", pendingAct, "ask them why; only they can release it"},
	"JobHoldMaxRequeue":                       {"It was requeued as often as the cluster allows and is held now", pendingAct, "find out why it did not start or did not last, then `scontrol release JOBID`"},
	"launch failed requeued held":             {"It could not be started on its node and is held now", pendingAct, "release it with `scontrol release JOBID`; if it comes back, tell the cluster's admins (`scontrol show job JOBID` names the node) or leave that node out with `exclude`"},
	"user env retrieval failed requeued held": {"Its login environment could not be read on the node and it is held now", pendingAct, "see that the login files of the account end quickly and without a prompt, then `scontrol release JOBID`"},
	"job requeued in held state":              {"It was requeued by hand and is held", pendingAct, "release it with `scontrol release JOBID`"},
	"job requeued in special exit state":      {"It was requeued by hand as a special case and is held", pendingAct, "release it with `scontrol release JOBID`"},
	"DependencyNeverSatisfied":                {"The job that it waits for ended in another way than it needs", pendingAct, "cancel the run and mend `dependency` in `sbatch_args`"},
	"BurstBufferOperation":                    {"The burst buffer could not be set up", pendingAct, "`scontrol show job JOBID` has the message; tell the cluster's admins, then `scontrol release JOBID`"},
	"JobLaunchFailure":                        {"It could not be started on its node", pendingAct, "look into `slurm.out` and tell the cluster's admins; `exclude` leaves the node out"},
	"SystemFailure":                           {"SLURM, its network or a file system failed", pendingAct, "tell the cluster's admins"},
	"BlockMaxError":                           {"Too many errors occurred on its block of nodes", pendingAct, "tell the cluster's admins"},
	"AssociationTimeLimit":                    {"The account has used up the time it was given", pendingAct, "ask for more, wait for the next period, or name another `account`"},
	"QOSTimeLimit":                            {"The QOS has used up the time it was given", pendingAct, "ask for more, wait for the next period, or name another `qos`"},
	"InactiveLimit":                           {"It was inactive for as long as the cluster allows", pendingAct, "cancel the run and start it again"},
	"NonZeroExitCode":                         {"Its last attempt ended with an error", pendingAct, "look into `slurm.out`; if it is held, `scontrol release JOBID`"},
	"OutOfMemory":                             {"Its last attempt ran out of memory", pendingAct, "cancel the run and ask for more with `mem`"},
	"TimeLimit":                               {"Its last attempt reached its time limit", pendingAct, "cancel the run and raise `time`"},

	// As it was asked for, it does not start.
	"PartitionTimeLimit": {"It asks for more time than its partition allows", pendingNever, "cancel the run and lower `time`, or name another `partition`; `sinfo -o '%P %l'` lists the limits"},
	"PartitionNodeLimit": {"It asks for more or fewer nodes than its partition allows", pendingNever, "cancel the run and change `nodes`, or name another `partition`; `scontrol show partition` has MinNodes and MaxNodes"},
	"PartitionDown":      {"Its partition is down", pendingNever, "cancel the run and name another `partition`, or ask the cluster's admins when it is back"},
	"PartitionInactive":  {"Its partition is inactive", pendingNever, "cancel the run and name another `partition`, or ask the cluster's admins when it is back"},
	"PartitionConfig":    {"It breaks a limit of its partition", pendingNever, "compare the settings with `scontrol show partition`, or name another `partition`"},
	"BadConstraints":     {"No nodes have all that it asks for", pendingNever, "cancel the run and change `constraint`, `gres`, `mem`, `cpus_per_task` or `nodes`; `sinfo -N -o '%N %f %G %c %m'` lists what the nodes have"},
	"NodeNotFound":       {"A node that it names does not exist", pendingNever, "cancel the run and mend `nodelist`; `sinfo -N` lists the nodes"},
	"ReservationDeleted": {"Its reservation is no longer there", pendingNever, "cancel the run and remove `reservation`, or name another one"},
	"DeadLine":           {"It cannot end before its deadline", pendingNever, "cancel the run and lower `time`, or set a later `deadline`"},
	"InvalidAccount":     {"Its account does not exist or may not be used", pendingNever, "cancel the run and name another `account`; `sacctmgr show assoc user=$USER` lists yours"},
	"InvalidQOS":         {"Its QOS does not exist or may not be used", pendingNever, "cancel the run and name another `qos`; `sacctmgr show qos` lists them"},
	"AccountNotAllowed":  {"Its account may not use the partition", pendingNever, "cancel the run and name another `account` or `partition`"},
	"QOSNotAllowed":      {"Its QOS may not be used with the account or the partition", pendingNever, "cancel the run and name another `qos`, `account` or `partition`"},
	"MaxMemPerLimit":     {"It asks for more memory per core or node than the cluster allows", pendingNever, "cancel the run and lower `mem`, or ask for more cores with `cpus_per_task`"},

	// Limits that older releases, or some plugins, name no closer.
	"AccountingPolicy":         {"A limit of the account or the QOS is reached", pendingWait, "it starts when other jobs end, unless it asks for more than is allowed at all: `sacctmgr show assoc user=$USER` and `sacctmgr show qos` list the limits"},
	"AssociationJobLimit":      {"As many jobs of the account run as are allowed", pendingWait, "it starts when one of them ends"},
	"AssociationResourceLimit": {"The account uses as much as it is allowed", pendingWait, "it starts when other jobs of the account end, unless it asks for more than is allowed at all"},
	"QOSJobLimit":              {"As many jobs of the QOS run as are allowed", pendingWait, "it starts when one of them ends; another `qos` may start at once"},
	"QOSResourceLimit":         {"The jobs of the QOS use as much as they are allowed", pendingWait, "it starts when one of them ends, unless it asks for more than is allowed at all"},
}

// byLowerReason finds a reason whatever its case, which has changed between releases.
var byLowerReason = func() map[string]pendingReason {
	found := make(map[string]pendingReason, len(pendingReasons))
	for reason, r := range pendingReasons {
		found[strings.ToLower(reason)] = r
	}
	return found
}()

// explainPending says what a job waits for, as squeue's %r or scontrol's Reason= give it, and what to do about it.
func explainPending(reason, jobID string) pendingReason {
	text := plainReason(reason)
	r, known := knownReason(text)
	if !known {
		r = unknownReason(text)
	}
	r.Hint = strings.ReplaceAll(r.Hint, "JOBID", cmp.Or(jobID, "JOBID"))
	return r
}

// plainReason takes away what the ways of asking put around a reason: parentheses, and scontrol's _ for blanks. What
// follows a colon are names, which may have a _ of their own.
func plainReason(reason string) string {
	text, names, named := strings.Cut(clean([]byte(reason)), ":")
	text = strings.ReplaceAll(text, "_", " ")
	if named {
		text += ":" + names
	}
	text = strings.Join(strings.Fields(text), " ")
	text = strings.TrimSuffix(strings.TrimPrefix(text, "("), ")")
	if text == "" || text == "null" {
		return "None"
	}
	return text
}

func knownReason(text string) (pendingReason, bool) {
	lower := strings.ToLower(text)
	if r, ok := byLowerReason[lower]; ok {
		return r, true
	}
	code, detail := text, ""
	if end := strings.IndexAny(text, ",:"); end >= 0 {
		code, detail = text[:end], strings.TrimSpace(text[end+1:])
	}
	if strings.EqualFold(code, "ReqNodeNotAvail") {
		return nodeNotAvailable(detail), true
	}
	if r, ok := byLowerReason[strings.ToLower(code)]; ok {
		return r, true
	}
	return limitReason(strings.ToLower(code))
}

// nodeNotAvailable is ReqNodeNotAvail, which says in words of its own whether nodes are broken or kept for something.
func nodeNotAvailable(detail string) pendingReason {
	key, nodes, _ := strings.Cut(detail, ":")
	nodes = strings.TrimSpace(nodes)
	switch {
	case strings.EqualFold(key, "UnavailableNodes") && nodes != "":
		return pendingReason{
			fmt.Sprintf("Nodes that it needs are down, drained or in maintenance: %s", nodes), pendingWait,
			"`sinfo -R` gives the reason; a shorter `time` may end before a maintenance, and other nodes (`nodelist`, `exclude`, `constraint`) may be free",
		}
	case strings.Contains(strings.ToLower(detail), "reserved"), strings.Contains(strings.ToLower(detail), "maintenance"):
		return pendingReason{
			"The nodes that it needs are reserved for another job or for maintenance", pendingWait,
			"a shorter `time` may end before that; `scontrol show reservation` lists reservations",
		}
	}
	return pendingReason{
		"A node that it needs is not available at the moment", pendingWait,
		"it often passes by itself; if not, `sinfo -R` and `scontrol show reservation` show why, and a shorter `time` or other nodes may help",
	}
}

// unknownReason is for what a site, a plugin or a newer release says: it is shown as it is.
func unknownReason(text string) pendingReason {
	if strings.Contains(strings.ToLower(text), "held") {
		return pendingReason{
			fmt.Sprintf("It is held; the scheduler says: %s", text), pendingAct,
			"`scontrol release JOBID` releases a job that its owner may release; else ask the cluster's admins",
		}
	}
	return pendingReason{
		fmt.Sprintf("The scheduler says: %s", text), pendingWait,
		"this reason is not known here; `scontrol show job JOBID` has the details, and the cluster's admins know what it means",
	}
}
