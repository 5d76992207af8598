package store_test

import (
	"testing"

	"potato/store"
)

func TestTokens(t *testing.T) {
	db := mustOpen(t)
	if got, err := db.TokenOf(t.Context(), "lab"); got != nil || err != nil {
		t.Fatalf("before any was issued: %+v, %v", got, err)
	}
	for _, sum := range []string{"one", "two"} {
		_, err := db.IssueToken(t.Context(), "lab", sum)
		must(t, err)
	}
	_, err := db.IssueToken(t.Context(), "other", "three")
	must(t, err)
	for sum, want := range map[string]struct{ known, replaced bool }{"one": {true, true}, "two": {true, false}, "three": {true, false}, "four": {}} {
		got, err := db.TokenByHash(t.Context(), sum)
		must(t, err)
		if (got != nil) != want.known || got != nil && (got.ReplacedAt != nil) != want.replaced {
			t.Errorf("%s: got %+v, want %+v", sum, got, want)
		}
	}
	must(t, db.SeeAgents(t.Context(), []store.AgentSeen{
		{Token: "two", Backend: "lab", AgentID: "a", Host: "gpu-1", Version: "1", At: 100},
		{Token: "two", Backend: "lab", AgentID: "b", Host: "gpu-2", Version: "1", At: 300},
		{Token: "two", Backend: "lab", AgentID: "b", At: 200}, // late, and without what it said of itself
	}))
	got, err := db.TokenOf(t.Context(), "lab")
	must(t, err)
	if got.SHA256 != "two" || got.FirstUsedAt == nil || *got.FirstUsedAt != 100 || got.LastSeen == nil || *got.LastSeen != 300 {
		t.Errorf("got %+v, want first used at 100 and last seen at 300", got)
	}
}

func TestAgents(t *testing.T) {
	db := mustOpen(t)
	now := 2e9
	must(t, db.SeeAgents(t.Context(), []store.AgentSeen{
		{Backend: "lab", AgentID: "a", Host: "gpu-1", Version: "1", At: now},
		{Backend: "lab", AgentID: "b", Host: "gpu-2", Version: "1", At: now + 2},
		{Backend: "other", AgentID: "a", Host: "gpu-3", Version: "1", At: now},
		{Backend: "lab", AgentID: "gone", Host: "gpu-4", Version: "1", At: 1},
	}))
	must(t, db.SeeAgents(t.Context(), []store.AgentSeen{{Backend: "lab", AgentID: "a", Version: "2", At: now + 1}}))
	got, err := db.AgentsOf(t.Context(), "lab")
	must(t, err)
	if len(got) != 2 || got[0].AgentID != "b" || got[1].Host != "gpu-1" || got[1].Version != "2" || got[1].LastSeen != now+1 {
		t.Errorf("got %+v, want b, then a with its host and new version, and nobody of long ago (T37)", got)
	}
}
