package agent_test

import (
	"strings"
	"testing"
	"unicode"

	"potato/agent"
)

// allReasons are those of Slurm's page "Job Reason Codes" (24.11), and those that only earlier releases have.
const allReasons = `
AccountingPolicy AccountNotAllowed AssociationJobLimit AssociationResourceLimit AssociationTimeLimit BadConstraints BeginTime
BurstBufferOperation BurstBufferResources BurstBufferStageIn Cleaning Constraints DeadLine Dependency DependencyNeverSatisfied
FedJobLock InactiveLimit InvalidAccount InvalidQOS JobArrayTaskLimit JobHeldAdmin JobHeldUser JobHoldMaxRequeue JobLaunchFailure
Licenses MaxMemPerLimit NodeDown NonZeroExitCode None OutOfMemory PartitionConfig PartitionDown PartitionInactive
PartitionNodeLimit PartitionTimeLimit Priority Prolog QOSJobLimit QOSNotAllowed QOSResourceLimit QOSTimeLimit QOSUsageThreshold
ReqNodeNotAvail Reservation ReservationDeleted Resources SchedDefer SystemFailure TimeLimit
FrontEndDown BlockMaxError BlockFreeAction PowerNotAvail PowerReserved NodeNotFound

AssocGrpBB AssocGrpBBMinutes AssocGrpBBRunMinutes AssocGrpBilling AssocGrpBillingMinutes AssocGrpBillingRunMinutes
AssocGrpCpuLimit AssocGrpCPUMinutesLimit AssocGrpCPURunMinutesLimit AssocGrpEnergy AssocGrpEnergyMinutes AssocGrpEnergyRunMinutes
AssocGrpGRES AssocGrpGRESMinutes AssocGrpGRESRunMinutes AssocGrpJobsLimit AssocGrpLicense AssocGrpLicenseMinutes
AssocGrpLicenseRunMinutes AssocGrpMemLimit AssocGrpMemMinutes AssocGrpMemRunMinutes AssocGrpNodeLimit AssocGrpNodeMinutes
AssocGrpNodeRunMinutes AssocGrpSubmitJobsLimit AssocGrpUnknown AssocGrpUnknownMinutes AssocGrpUnknownRunMinutes AssocGrpWallLimit
AssocMaxBBMinutesPerJob AssocMaxBBPerJob AssocMaxBBPerNode AssocMaxBillingMinutesPerJob AssocMaxBillingPerJob
AssocMaxBillingPerNode AssocMaxCpuMinutesPerJobLimit AssocMaxCpuPerJobLimit AssocMaxCpuPerNode AssocMaxEnergyMinutesPerJob
AssocMaxEnergyPerJob AssocMaxEnergyPerNode AssocMaxGRESMinutesPerJob AssocMaxGRESPerJob AssocMaxGRESPerNode AssocMaxJobsLimit
AssocMaxLicenseMinutesPerJob AssocMaxLicensePerJob AssocMaxMemMinutesPerJob AssocMaxMemPerJob AssocMaxMemPerNode
AssocMaxNodeMinutesPerJob AssocMaxNodePerJobLimit AssocMaxSubmitJobLimit AssocMaxUnknownMinutesPerJob AssocMaxUnknownPerJob
AssocMaxUnknownPerNode AssocMaxWallDurationPerJobLimit

MaxBBPerAccount MaxBillingPerAccount MaxCpuPerAccount MaxEnergyPerAccount MaxGRESPerAccount MaxJobsPerAccount
MaxLicensePerAccount MaxMemoryPerAccount MaxNodePerAccount MaxSubmitJobsPerAccount MaxUnknownPerAccount

QOSGrpBB QOSGrpBBMinutes QOSGrpBBRunMinutes QOSGrpBilling QOSGrpBillingMinutes QOSGrpBillingRunMinutes QOSGrpCpuLimit
QOSGrpCPUMinutesLimit QOSGrpCPURunMinutesLimit QOSGrpEnergy QOSGrpEnergyMinutes QOSGrpEnergyRunMinutes QOSGrpGRES
QOSGrpGRESMinutes QOSGrpGRESRunMinutes QOSGrpJobsLimit QOSGrpLicense QOSGrpLicenseMinutes QOSGrpLicenseRunMinutes QOSGrpMemLimit
QOSGrpMemoryMinutes QOSGrpMemoryRunMinutes QOSGrpNodeLimit QOSGrpNodeMinutes QOSGrpNodeRunMinutes QOSGrpSubmitJobsLimit
QOSGrpUnknown QOSGrpUnknownMinutes QOSGrpUnknownRunMinutes QOSGrpWallLimit QOSMaxBBMinutesPerJob QOSMaxBBPerJob QOSMaxBBPerNode
QOSMaxBBPerUser QOSMaxBillingMinutesPerJob QOSMaxBillingPerJob QOSMaxBillingPerNode QOSMaxBillingPerUser
QOSMaxCpuMinutesPerJobLimit QOSMaxCpuPerJobLimit QOSMaxCpuPerNode QOSMaxCpuPerUserLimit QOSMaxEnergyMinutesPerJob
QOSMaxEnergyPerJob QOSMaxEnergyPerNode QOSMaxEnergyPerUser QOSMaxGRESMinutesPerJob QOSMaxGRESPerJob QOSMaxGRESPerNode
QOSMaxGRESPerUser QOSMaxJobsPerUserLimit QOSMaxLicenseMinutesPerJob QOSMaxLicensePerJob QOSMaxLicensePerUser
QOSMaxMemoryMinutesPerJob QOSMaxMemoryPerJob QOSMaxMemoryPerNode QOSMaxMemoryPerUser QOSMaxNodeMinutesPerJob
QOSMaxNodePerJobLimit QOSMaxNodePerUserLimit QOSMaxSubmitJobPerUserLimit QOSMaxUnknownMinutesPerJob QOSMaxUnknownPerJob
QOSMaxUnknownPerNode QOSMaxUnknownPerUser QOSMaxWallDurationPerJobLimit QOSMinBB QOSMinBilling QOSMinCpuNotSatisfied QOSMinEnergy
QOSMinGRES QOSMinLicense QOSMinMemory QOSMinNode QOSMinUnknown`

func TestEveryReasonIsExplained(t *testing.T) {
	for _, reason := range strings.Fields(allReasons) {
		if !agent.KnownReason(reason) {
			t.Errorf("%s is not known", reason)
		}
		for _, cased := range []string{reason, strings.ToLower(reason)} {
			words, verdict, hint := agent.ExplainPending(cased, "4242")
			if !unicode.IsUpper(rune(words[0])) || strings.HasSuffix(words, ".") || strings.Contains(words, "  ") || hint == "" {
				t.Errorf("%s: %q, %s, %q", cased, words, verdict, hint)
			}
			if strings.Contains(hint, "JOBID") {
				t.Errorf("%s: the job's number is missing in %q", cased, hint)
			}
		}
	}
}

// T11, T12: what waits, what waits for a person, and what never starts.
func TestVerdicts(t *testing.T) {
	for verdict, reasons := range map[string]string{
		"wait": `None; Priority; Resources; BeginTime; Dependency; Cleaning; Prolog; NodeDown; Licenses; QOSMaxJobsPerUserLimit;
			QOSMaxCpuPerUserLimit; QOSMaxGRESPerUser; QOSGrpGRES; QOSGrpCpuLimit; AssocGrpGRES; AssocGrpCpuLimit; AssocMaxJobsLimit;
			AssocGrpCPURunMinutesLimit; MaxGRESPerAccount; JobArrayTaskLimit; Reservation; ReqNodeNotAvail;
			ReqNodeNotAvail, UnavailableNodes:; ReqNodeNotAvail, UnavailableNodes:node04; ReqNodeNotAvail,_UnavailableNodes:node04;
			ReqNodeNotAvail, May be reserved for other job; ReqNodeNotAvail, Reserved for maintenance;
			Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions;
			Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions; (Priority); (null)`,
		"act": `JobHeldUser; JobHeldAdmin; launch failed requeued held; launch_failed_requeued_held; user env retrieval failed requeued held;
			job requeued in held state; JobHoldMaxRequeue; DependencyNeverSatisfied; AssocGrpCPUMinutesLimit; AssocGrpGRESMinutes;
			held by the weekly script of the site`,
		"never": `PartitionTimeLimit; PartitionNodeLimit; PartitionDown; PartitionInactive; BadConstraints; AssocMaxWallDurationPerJobLimit;
			QOSMaxWallDurationPerJobLimit; QOSMinGRES; QOSMaxCpuPerJobLimit; AssocMaxGRESPerJob; AssocMaxMemPerNode;
			AssocMaxCpuMinutesPerJobLimit; InvalidAccount; InvalidQOS; MaxMemPerLimit; NodeNotFound; ReservationDeleted; DeadLine`,
	} {
		for reason := range strings.SplitSeq(reasons, ";") {
			reason = strings.TrimSpace(reason)
			if words, got, _ := agent.ExplainPending(reason, "7"); got != verdict {
				t.Errorf("%s: %s (%s), want %s", reason, got, words, verdict)
			}
		}
	}
}

func TestReasonsSayWhatToDo(t *testing.T) {
	for _, c := range []struct{ reason, words, hint string }{
		{"JobHeldUser", "It is held by its owner", "release it with `scontrol release 4242`"},
		{"Priority", "higher priority", "`sprio -j 4242`"},
		{"PartitionTimeLimit", "more time than its partition allows", "lower `time`"},
		{"ReqNodeNotAvail, UnavailableNodes:node[04-05]", "down, drained or in maintenance: node[04-05]", "shorter `time`"},
		{"ReqNodeNotAvail,_UnavailableNodes:gpu_4", "maintenance: gpu_4", "sinfo -R"},
		{"ReqNodeNotAvail, Reserved for maintenance", "reserved for another job or for maintenance", "shorter `time`"},
		{"AssocGrpGRES", "The jobs of the account together have as many GPUs as they may", "another `account`"},
		{"QOSMaxGRESPerUser", "The jobs of one person have as many GPUs as the QOS allows", "lower `gres` or `gpus_per_node`"},
		{"QOSMaxWallDurationPerJobLimit", "It asks for more time than the QOS allows", "lower `time`, or name another `qos`"},
		{"AssocMaxGRESMinutesPerJob", "more GPUs over its `time` than the account allows", "`gpus_per_node` or `time`"},
		{"MaxJobsPerAccount", "The jobs of the account have as many running jobs as the QOS allows", "starts when one of them ends"},
		{"AssocGrpCPUMinutesLimit", "used up", "ask the cluster's admins for more"},
		{"QOSMinGRES", "fewer GPUs than the QOS demands", "raise `gres`"},
		{"WaitingForTheMoon", "The scheduler says: WaitingForTheMoon", "scontrol show job 4242"},
		{"quota: held\x1b[31m until\nMonday", "It is held; the scheduler says: quota: held until Monday", "scontrol release 4242"},
	} {
		words, _, hint := agent.ExplainPending(c.reason, "4242")
		if !strings.Contains(words, c.words) || !strings.Contains(hint, c.hint) {
			t.Errorf("%s: %q; %q", c.reason, words, hint)
		}
	}
}

func FuzzExplainPending(f *testing.F) {
	for _, reason := range []string{"", "(null)", "ReqNodeNotAvail, UnavailableNodes:node04", "qosmaxperjob", "a:b,c", "\x1b["} {
		f.Add(reason)
	}
	f.Fuzz(func(t *testing.T, reason string) {
		words, verdict, hint := agent.ExplainPending(reason, "7")
		if words == "" || verdict == "" || hint == "" || strings.ContainsAny(words+hint, "\n\x1b") {
			t.Errorf("%q, %q, %q", words, verdict, hint)
		}
	})
}
