package runners_test

import (
	"testing"

	"potato/api"
	"potato/runners/runnertest"
)

func TestRunFromQueueToSuccess(t *testing.T) {
	s := start(t, runnertest.Study(t, ""), nil)
	id := s.create(nil)
	r := s.await(id, api.RunSuccess)
	t.Logf("%+v", r)
	t.Log(s.logText(id))
}
