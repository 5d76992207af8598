package supervisor

import (
	"potato/api"
	"potato/runners"
	"potato/store"
)

// runCode is the code that a run ends with. What the packages below call by names of their own, such as a refused line of
// predictions or of a data file, has one of the codes that tools know; the sentence says which of them it was.
func runCode(code string, from api.RunStatus) string {
	if runners.KnownCode(code) {
		return code
	}
	if from == api.RunBuilding {
		return "bad_bundle"
	}
	return "worker_failed"
}

// runError is an error as a run keeps it: always with a code and a sentence. What is no sentence of ours goes to the log
// whole, and the run gets the code and words of the part of its way that broke.
func runError(err error, code, sentence string) *api.Error {
	e := api.AsError(err)
	switch {
	case e.Kind != api.KindInternal:
	case isDiskFull(err):
		e = store.DiskFull(err)
	default:
		e = api.Unavailablef(code, "%s", sentence).WithCause(err)
	}
	return runners.WithHint(e)
}

func isDiskFull(err error) bool {
	return api.IsDiskFull(err) || api.HasCode(err, "disk_full")
}
