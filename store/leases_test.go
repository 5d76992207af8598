package store_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"potato/api"
	"potato/store"
)

// T37: of many who claim a run at the same moment, one gets it.
func TestOneClaimWins(t *testing.T) {
	db := mustOpen(t)
	_, err := db.IssueToken(t.Context(), "lab", "token")
	must(t, err)
	id := mustRun(t, db, api.RunQueued)
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			err := db.ClaimRun(t.Context(), store.Lease{RunID: id, Lease: fmt.Sprint(i), AgentID: "a", ClaimID: fmt.Sprint("c", i)}, "token", store.RunUpdate{})
			if err == nil {
				won.Add(1)
			} else if !api.HasCode(err, "run_moved") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d claims won, want 1", won.Load())
	}
	r, err := db.RunByID(t.Context(), id)
	must(t, err)
	l, err := db.LeaseOf(t.Context(), id)
	must(t, err)
	if r.Status != api.RunBuilding || l == nil || l.ClaimID != "c"+l.Lease || l.HeardAt != nil {
		t.Errorf("got %s, %+v", r.Status, l)
	}
}

// G8: a token that was replaced while its agent waited gets no work.
func TestClaimWithReplacedToken(t *testing.T) {
	db := mustOpen(t)
	for _, sum := range []string{"old", "new"} {
		_, err := db.IssueToken(t.Context(), "lab", sum)
		must(t, err)
	}
	id := mustRun(t, db, api.RunQueued)
	for _, sum := range []string{"old", "never"} {
		wantCode(t, db.ClaimRun(t.Context(), store.Lease{RunID: id, Lease: "l"}, sum, store.RunUpdate{}), "token_revoked")
	}
	if r, err := db.RunByID(t.Context(), id); err != nil || r.Status != api.RunQueued {
		t.Errorf("got %s, %v", r.Status, err)
	}
}

func TestLeaseFromClaimToQueue(t *testing.T) {
	db := mustOpen(t)
	_, err := db.IssueToken(t.Context(), "lab", "token")
	must(t, err)
	first, second := mustRun(t, db, api.RunQueued), mustRun(t, db, api.RunQueued)
	at, host := 5.0, "gpu-1"
	must(t, db.UpdateRun(t.Context(), first, store.RunUpdate{WaitingSince: &at}))
	must(t, db.ClaimRun(t.Context(), store.Lease{RunID: first, Lease: "l1", AgentID: "a", ClaimID: "c"}, "token", store.RunUpdate{StartedAt: &at, Host: &host}))
	must(t, db.HearLease(t.Context(), first, "another"))
	if l, err := db.LeaseByClaim(t.Context(), "a", "c"); err != nil || l == nil || l.RunID != first || l.HeardAt != nil {
		t.Errorf("got %+v, %v", l, err)
	}
	if l, err := db.LeaseByClaim(t.Context(), "b", "c"); err != nil || l != nil {
		t.Errorf("another agent's question: %+v, %v", l, err)
	}
	must(t, db.HearLease(t.Context(), first, "l1"))
	must(t, db.KeepUpload(t.Context(), first, store.Upload{SHA256: "sum", Bytes: 7}))
	if l, err := db.LeaseOf(t.Context(), first); err != nil || l.HeardAt == nil || l.Upload != (store.Upload{SHA256: "sum", Bytes: 7}) {
		t.Errorf("got %+v, %v", l, err)
	}
	wantCode(t, db.RequeueRun(t.Context(), first, api.RunRunning, "back"), "run_moved")
	must(t, db.RequeueRun(t.Context(), first, api.RunBuilding, "back"))
	queued, err := db.RunsByStatus(t.Context(), api.RunQueued)
	must(t, err)
	if len(queued) != 2 || queued[0].RunID != first || queued[1].RunID != second || queued[0].StartedAt != nil || queued[0].WaitingSince != nil ||
		queued[0].Host != "" || queued[0].Message != "back" {
		t.Errorf("got %+v, want it in its old place as new", queued)
	}
	if l, err := db.LeaseOf(t.Context(), first); err != nil || l != nil {
		t.Errorf("it still has the lease %+v, %v", l, err)
	}
}

func TestDeletedRunHasNoLease(t *testing.T) {
	db := mustOpen(t)
	_, err := db.IssueToken(t.Context(), "lab", "token")
	must(t, err)
	id := mustRun(t, db, api.RunQueued)
	must(t, db.ClaimRun(t.Context(), store.Lease{RunID: id, Lease: "l"}, "token", store.RunUpdate{}))
	must(t, db.MoveRun(t.Context(), id, api.RunBuilding, api.RunError, store.RunUpdate{}))
	must(t, db.DeleteRun(t.Context(), id))
	if l, err := db.LeaseOf(t.Context(), id); err != nil || l != nil {
		t.Errorf("got %+v, %v", l, err)
	}
}
