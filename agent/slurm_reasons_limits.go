package agent

import (
	"fmt"
	"regexp"
)

// The names of limits are put together: whose limit, over what it is counted, of which resource. AssocGrpCPURunMinutesLimit
// is the account's, of all jobs together, on the minutes that running ones still have.
var (
	limitName   = regexp.MustCompile(`^(assoc|qos)(grp|max|min)([a-z]+?)(minutesperjob|runminutes|minutes|perjob|pernode|peruser|notsatisfied)?(?:limit)?$`)
	accountName = regexp.MustCompile(`^max([a-z]+?)peraccount$`)
)

// limitOwners say whose limit it is, and which key names another one.
var limitOwners = map[string]struct{ words, key string }{
	"assoc": {"the account", "account"},
	"qos":   {"the QOS", "qos"},
}

// limitResources say what is limited, and which keys ask for it.
var limitResources = map[string]struct{ words, keys string }{
	"bb":           {"burst buffer", "what `sbatch_args` asks of the burst buffer"},
	"billing":      {"billing units", "`gres`, `cpus_per_task` or `mem`"},
	"cpu":          {"CPUs", "`cpus_per_task`, `nodes` or `ntasks_per_node`"},
	"energy":       {"energy", "`time` or `nodes`"},
	"gres":         {"GPUs", "`gres` or `gpus_per_node`"},
	"license":      {"licences", "`licenses`"},
	"mem":          {"memory", "`mem` or `mem_per_gpu`"},
	"memory":       {"memory", "`mem` or `mem_per_gpu`"},
	"node":         {"nodes", "`nodes`"},
	"unknown":      {"a resource", "what the job asks for"},
	"wall":         {"time", "`time`"},
	"wallduration": {"time", "`time`"},
	"jobs":         {"running jobs", ""},
	"submitjob":    {"jobs in the queue", ""},
	"submitjobs":   {"jobs in the queue", ""},
}

// limitReason reads the name of a limit, in lower case.
func limitReason(name string) (pendingReason, bool) {
	if m := accountName.FindStringSubmatch(name); m != nil {
		what, known := limitResources[m[1]]
		return perHolder("the QOS", "the account", what.words, what.keys, "qos"), known
	}
	m := limitName.FindStringSubmatch(name)
	if m == nil {
		return pendingReason{}, false
	}
	owner, scope, per := limitOwners[m[1]], m[2], m[4]
	what, known := limitResources[m[3]]
	switch {
	case !known:
		return pendingReason{}, false
	case scope == "min":
		return pendingReason{
			fmt.Sprintf("It asks for fewer %s than %s demands", what.words, owner.words), pendingNever,
			fmt.Sprintf("cancel the run and raise %s, or name another `%s`", what.keys, owner.key),
		}, true
	case scope == "grp":
		return together(owner.words, what.words, per, owner.key), true
	case per == "peruser" || what.keys == "":
		return perHolder(owner.words, "one person", what.words, what.keys, owner.key), true
	}
	return perJob(owner.words, what.words, per, what.keys, owner.key), true
}

// together is a limit on all jobs of an account or QOS. Minutes are a budget that is used up, all else becomes free again.
func together(owner, what, per, key string) pendingReason {
	switch per {
	case "minutes":
		return pendingReason{
			fmt.Sprintf("The minutes of %s that %s was given are used up, or do not suffice for the job's `time`", what, owner), pendingAct,
			fmt.Sprintf("lower `time`, ask the cluster's admins for more, wait for the next period, or name another `%s`", key),
		}
	case "runminutes":
		return pendingReason{
			fmt.Sprintf("The running jobs of %s have taken all the minutes of %s that they may at a time", owner, what), pendingWait,
			"it starts as they go on and end; a shorter `time` counts for less",
		}
	}
	return pendingReason{
		fmt.Sprintf("The jobs of %s together have as many %s as they may", owner, what), pendingWait,
		fmt.Sprintf("it starts when one of them ends; another `%s` may start at once", key),
	}
}

// perHolder is a limit on what the jobs of one person or one account have together.
func perHolder(owner, holder, what, keys, key string) pendingReason {
	hint := fmt.Sprintf("it starts when one of them ends; another `%s` may start at once", key)
	if keys != "" {
		hint += fmt.Sprintf("; a job that asks for more than that by itself never starts: lower %s then", keys)
	}
	return pendingReason{fmt.Sprintf("The jobs of %s have as many %s as %s allows", holder, what, owner), pendingWait, hint}
}

// perJob is a limit on one job, which waiting does not lift.
func perJob(owner, what, per, keys, key string) pendingReason {
	words := fmt.Sprintf("It asks for more %s than %s allows", what, owner)
	switch per {
	case "pernode":
		words = fmt.Sprintf("It asks for more %s on a node than %s allows", what, owner)
	case "minutesperjob":
		words = fmt.Sprintf("It asks for more %s over its `time` than %s allows", what, owner)
		keys += " or `time`"
	}
	return pendingReason{words, pendingNever, fmt.Sprintf("cancel the run and lower %s, or name another `%s`", keys, key)}
}
