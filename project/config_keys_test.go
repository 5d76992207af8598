package project_test

import (
	"slices"
	"strings"
	"testing"

	"potato/project"
)

// The keys of the specification, C2 and C4 to C6.
const (
	trainingKeys = `enabled backend max_wall_seconds grace_seconds heartbeat_timeout_s max_predictions_mb writeback auto_retrain
		backends retain_runs max_concurrent_runs split_seed splits aggregation train_on_accepted_prelabels warm_worker
		trainers_dir training_dir device num_threads max_ram_mb python packages`
	writebackKeys   = `schemas include_unlabeled min_confidence field only_if_better`
	autoRetrainKeys = `enabled trainer schemas backend fallback update_frequency min_interval_s quiet_hours params`
	sshKeys         = `type host user port identity_file python packages gpus min_free_gpu_mb num_threads remote_dir env
		max_artifact_mb fetch_artifacts keep_remote heartbeat_timeout_s description transport`
	slurmOnlyKeys = `job_python prelude poll_interval_s queue_timeout_s detach partition account qos gres gpus_per_node nodes
		ntasks_per_node cpus_per_task mem mem_per_gpu time constraint nodelist exclude reservation exclusive nice licenses
		deadline requeue signal mail_user mail_type sbatch_args`
	agentKeys = `type description heartbeat_timeout_s queue_timeout_s`
)

func slurmKeys() string {
	keys := slices.DeleteFunc(strings.Fields(sshKeys), func(key string) bool { return key == "gpus" || key == "packages" })
	return strings.Join(keys, " ") + " " + slurmOnlyKeys
}

// Every key of the specification is one of the types, and there is no other.
func TestKeysAreThoseOfTheSpecification(t *testing.T) {
	want := map[string]string{
		"model_training":                  trainingKeys,
		"model_training.writeback":        writebackKeys,
		"model_training.auto_retrain":     autoRetrainKeys,
		"model_training.backends (ssh)":   sshKeys,
		"model_training.backends (slurm)": slurmKeys(),
		"model_training.backends (agent)": agentKeys,
	}
	for _, table := range project.KeyTables() {
		keys := strings.Fields(want[table.Block])
		var got []string
		for _, k := range table.Keys {
			got = append(got, k.Name)
			if k.Doc == "" || k.Type == "" {
				t.Errorf("%s.%s has no doc or type", table.Block, k.Name)
			}
		}
		slices.Sort(keys)
		slices.Sort(got)
		if !slices.Equal(got, keys) {
			t.Errorf("%s:\n got %v\nwant %v", table.Block, got, keys)
		}
		delete(want, table.Block)
	}
	if len(want) > 0 {
		t.Errorf("no tables for %v", want)
	}
}

// A value that each key takes, for a backend or block that takes the key.
var validValues = map[string]string{
	"backends": "{}", "max_concurrent_runs": "2", "splits": "{train: 8, dev: 2}", "aggregation": "majority", "warm_worker": "off",
	"writeback": "{}", "auto_retrain": "{}", "device": "cuda:1", "packages": "[a>=1]", "trainers_dir": "data",
	"schemas": "[sentiment]", "params": "{a: [1, {b: x}]}", "quiet_hours": "22:00-06:00", "backend": "local", "fallback": "local",
	"min_confidence": "0.5", "gpus": "0,1", "env": "{PATH: /opt/bin, N: 3}", "transport": "openssh", "prelude": "[module load x]",
	"nodes": "1-2", "mem": "32G", "mem_per_gpu": "4000", "time": "30", "sbatch_args": "[--comment=x]", "deadline": "2026-12-01T10:00:00",
	"gres": "gpu:1", "signal": "B:TERM@60", "type": "",
}

// Each key of a block or type is taken, and each key of another is refused by name with its place.
func TestEachKeyIsTakenWhereItBelongs(t *testing.T) {
	value := func(key string) string {
		if v, ok := validValues[key]; ok {
			return v
		}
		for _, table := range project.KeyTables() {
			for _, k := range table.Keys {
				switch {
				case k.Name != key:
				case k.Type == "true or false":
					return "yes"
				case k.Type == "number" || k.Type == "whole number":
					return "7"
				default:
					return "x"
				}
			}
		}
		return "x"
	}
	types := map[string]string{
		"ssh":   "{type: ssh, host: h",
		"slurm": "{type: slurm, host: h, remote_dir: /shared/x",
		"agent": "{type: agent",
	}
	all := strings.Fields(sshKeys + " " + slurmOnlyKeys)
	taken := map[string]string{"ssh": sshKeys, "slurm": slurmKeys(), "agent": agentKeys}
	for name, head := range types {
		for _, key := range all {
			if slices.Contains([]string{"type", "host", "remote_dir"}, key) && name != "agent" || key == "type" {
				continue
			}
			_, r := project.Load(writeStudy(t, study+"model_training:\n  backends:\n    b: "+head+", "+key+": "+quoted(value(key))+"}\n"))
			takes := slices.Contains(strings.Fields(taken[name]), key)
			switch got := found(r.Errors); {
			case takes && len(got) > 0:
				t.Errorf("a %s backend refuses %s: %q", name, key, got)
			case !takes && (len(got) != 1 || !strings.Contains(got[0], "model_training.backends.b."+key+" is a key of ")):
				t.Errorf("a %s backend with %s: got %q", name, key, got)
			}
		}
	}
	for block, keys := range map[string]string{"": trainingKeys, "writeback": writebackKeys, "auto_retrain": autoRetrainKeys} {
		for _, key := range strings.Fields(keys) {
			config := study + "model_training:\n  " + key + ": " + value(key) + "\n"
			if block != "" {
				config = study + "model_training:\n  " + block + ":\n    " + key + ": " + value(key) + "\n"
			}
			if _, r := project.Load(writeStudy(t, config)); len(r.Errors) > 0 {
				t.Errorf("%s.%s is refused: %q", block, key, found(r.Errors))
			}
		}
	}
}

// quoted puts a value that stands in a flow map into quotes when its commas would end it there.
func quoted(v string) string {
	if strings.ContainsAny(v, ",") && !strings.ContainsAny(v, "[{") {
		return `"` + v + `"`
	}
	return v
}
