package handlers_test

import (
	"strings"
	"testing"

	"potato/api"
)

// A run's way over an agent, from the queue to success.
func TestRunOnAnAgent(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "", nil)
	id := l.on("lab", nil)
	if r := l.run(id); r.Status != api.RunQueued || r.Queue == nil || !strings.Contains(r.Queue.WaitingFor, "an agent on lab") ||
		!strings.Contains(r.Hint, "potato training agent") || !strings.Contains(r.Hint, "--backend lab") {
		t.Errorf("got %s, %+v, hint %q: a run that waits says for what and how to help (G2, §11)", r.Status, r.Queue, r.Hint)
	}
	w := l.agent("lab", "a").claim("c1")
	if w.job.RunID != id || w.job.NextSeq != 1 || w.job.Spec.Trainer != "steered" || len(w.job.Spec.Schemas) != 1 || len(w.job.Spec.Schemas[0].Labels) != 2 ||
		w.job.Spec.BundleDir != "" || w.job.GraceSeconds != 2 || w.job.HeartbeatTimeoutS != 120 {
		t.Errorf("got the job %+v", w.job)
	}
	w.train()
	r := l.await(id, api.RunSuccess)
	if r.Host != "gpu-box" || r.Device != "cuda:0" || r.ArtifactURI != "gpu-box:/home/me/"+string(id)+"/artifacts" || r.Environment["python"] != "3.12.1" ||
		r.Metrics["test_accuracy"] == nil || r.Queue != nil || r.Hint != "" {
		t.Errorf("got %+v", r)
	}
	files := decode[api.ArtifactList](t, l.get(run(id, "/artifacts")).ok(t, 200)).Artifacts
	if len(files) != 2 || files[0].Path != "predictions.jsonl" || files[0].Where != "server" || files[1] != (api.Artifact{Path: "model.pkl", Bytes: 4711, Where: "host"}) {
		t.Errorf("got the files %+v, want the predictions here and the model there (G4)", files)
	}
	log := l.get(run(id, "/log?source=agent")).ok(t, 200).text
	if !strings.Contains(log, "hello from the agent") || !strings.Contains(log, "claimed by the agent a, version 1, on gpu-box") {
		t.Errorf("agent.log has %s", log)
	}
	if w.say("GET", "bundle", nil).StatusCode != 410 {
		t.Error("a run that is over still gives its bundle")
	}
	backends := decode[api.BackendList](t, l.get(below("/backends")).ok(t, 200)).Backends
	seen := backends[1].Agent
	if !backends[1].Available || seen == nil || !seen.Registered || seen.LastSeen == nil || len(seen.Agents) != 1 || seen.Agents[0].Host != "gpu-box" {
		t.Errorf("got %+v, %+v", backends[1], seen)
	}
}
