package supervisor_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"potato/agent"
	"potato/agent/agenttest"
	"potato/api"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/supervisor"
)

// distant is the fake runner on a machine from which files have to be copied, by a copy that waits for its gate.
type distant struct {
	*runnertest.Fake
	answers chan error // of the next copies
}

func (d *distant) Follow(ctx context.Context, j runners.Job, h api.Handle) error {
	j.Desk = distantDesk{j.Desk}
	return d.Fake.Follow(ctx, j, h)
}

// distantDesk hears of files that lie on the other machine.
type distantDesk struct{ agent.Desk }

func (d distantDesk) Finish(ctx context.Context, job api.Job, f api.Finish) error {
	f.ArtifactURI = "gpu.example.org:/jobs/" + string(job.RunID) + "/artifacts"
	return d.Desk.Finish(ctx, job, f)
}

func (d *distant) Fetch(ctx context.Context, j runners.Job, _ api.Handle, success bool) (bool, error) {
	if !success {
		return true, nil
	}
	j.Step("copying the model from gpu: 0 of 1 MB")
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case err := <-d.answers:
		if err == nil {
			err = os.WriteFile(filepath.Join(j.Dir, "artifacts", "model.bin"), []byte("weights"), 0o600)
		}
		return err == nil, err
	}
}

// A copy that broke off leaves a warning; it can be asked for again, and its success takes the warning away (H7).
func TestFilesAreCopiedAgain(t *testing.T) {
	t.Parallel()
	machine := &distant{&runnertest.Fake{Machine: &runnertest.Machine{}}, make(chan error, 1)}
	s := start(t, runnertest.Study(t, "  backends: {gpu: {type: ssh, host: gpu.example.org}}\n"), func(o *supervisor.Options) {
		o.Runners = map[api.BackendType]runners.Runner{api.BackendLocal: &runnertest.Fake{Machine: &runnertest.Machine{}}, api.BackendSSH: machine}
	})
	const stalled = "The copy from gpu.example.org sent nothing for 180 s"
	machine.answers <- api.Unavailablef("copy_stalled", stalled)
	req := request(nil)
	req.Backend = "gpu"
	started, err := s.CreateRun(t.Context(), req, api.TriggerAPI, "admin")
	must(t, err)
	id := started.RunID
	r := s.await(id, api.RunSuccess)
	if !slices.Contains(r.Warnings, stalled) || r.ArtifactURI == filepath.Join(s.config.TrainingPath(), "runs", string(id), "artifacts") {
		t.Fatalf("got warnings %q and artifacts at %q, want that the copy stalled", r.Warnings, r.ArtifactURI)
	}
	must(t, s.CopyArtifacts(t.Context(), id))
	wantCode(t, s.CopyArtifacts(t.Context(), id), "copy_running")
	s.awaitStep(id, "copying the model from gpu: 0 of 1 MB")
	s.restart() // the copy is cut off, and nobody shows its step for ever
	if r := s.await(id, api.RunSuccess); r.Step != "" {
		t.Errorf("got step %q after a restart", r.Step)
	}
	machine.answers <- nil
	must(t, s.CopyArtifacts(t.Context(), id))
	agenttest.Wait(t, "the files to be here", func() (bool, string) {
		r, err = s.RunByID(t.Context(), id)
		must(t, err)
		return r.ArtifactURI == filepath.Join(s.config.TrainingPath(), "runs", string(id), "artifacts"), r.ArtifactURI + " " + r.Step
	})
	if slices.Contains(r.Warnings, stalled) {
		t.Errorf("got warnings %q, the files are here", r.Warnings)
	}
	list, err := s.Artifacts(t.Context(), id)
	must(t, err)
	if i := slices.IndexFunc(list.Artifacts, func(a api.Artifact) bool { return a.Path == "model.bin" }); i < 0 || list.Artifacts[i].Where != "server" {
		t.Errorf("got files %+v", list.Artifacts)
	}
	wantCode(t, s.CopyArtifacts(t.Context(), id), "nothing_to_copy")
}

func TestNothingToCopy(t *testing.T) {
	t.Parallel()
	s := start(t, runnertest.Study(t, ""), fake(&runnertest.Machine{}))
	id := s.create(nil)
	s.await(id, api.RunSuccess)
	wantCode(t, s.CopyArtifacts(t.Context(), id), "nothing_to_copy")
	wantCode(t, s.CopyArtifacts(t.Context(), "20200101T000000-aaaaaaaa"), "run_not_found")
}
