package runners_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"potato/agent/agenttest"
	"potato/api"
	"potato/runners/hosts/hoststest"
)

func TestMain(m *testing.M) {
	agenttest.Main(func() int {
		code := hoststest.Main(m.Run)
		if scheduler.Cluster != nil {
			scheduler.Stop()
		}
		if err := goleak.Find(); err != nil && code == 0 {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			return 1
		}
		return code
	})
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if !api.HasCode(err, code) {
		t.Fatalf("got error %v, want code %s", err, code)
	}
}
