package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"potato/agent/agenttest"
	"potato/agent/slurmtest"
	"potato/api"
)

// Q9: an agent that was started by hand on a login node submits what it is given to SLURM.
func TestAgentOnALoginNode(t *testing.T) {
	t.Parallel()
	slurmtest.Require(t)
	c, err := slurmtest.Start(1, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	m := newMachine(t)
	env := map[string]string{"FROM_CONFIG": "yes"}
	for _, kv := range c.Env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	settings, err := json.Marshal(map[string]any{"poll_interval_s": 1, "gres": "gpu:1", "time": 10, "mem": "100M", "env": env})
	if err != nil {
		t.Fatal(err)
	}
	file, dump := filepath.Join(m.home, "slurm.json"), filepath.Join(m.home, "env.json")
	if err := os.WriteFile(file, settings, 0o600); err != nil {
		t.Fatal(err)
	}
	id := m.add(append([]agenttest.Step{{"env", dump}}, agenttest.Good(3)...)...)
	p := m.start("--once", "--slurm-config", file)
	p.leaves(0, "the run is done")
	h := m.until(id, api.RunSuccess)
	if strings.Count(string(h.Predictions), "\n") != 3 || !strings.HasSuffix(h.Finish.ArtifactURI, ":"+filepath.Join(m.workdir(), "artifacts", string(id))) {
		t.Errorf("%q, %+v", h.Predictions, h.Finish)
	}
	var seen map[string]string
	b, err := os.ReadFile(dump)
	if err != nil || json.Unmarshal(b, &seen) != nil || seen["SLURM_JOB_ID"] == "" || seen["FROM_CONFIG"] != "yes" || seen["CUDA_VISIBLE_DEVICES"] == "" {
		t.Errorf("the worker's environment: %v, %s", err, b)
	}
	if strings.Contains(string(b), m.token) {
		t.Error("the worker got the token")
	}

	if err := os.WriteFile(file, []byte(`{"partiton": "gpu"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	p = m.start("--slurm-config", file)
	p.leaves(1, `slurm.json: "partiton" (did you mean "partition"?) is no SLURM setting`)
}
