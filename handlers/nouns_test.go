package handlers_test

import (
	"slices"
	"testing"

	"potato/api"
	"potato/runners/runnertest"
)

func TestBackends(t *testing.T) {
	s := films(t, "  backends:\n    gpu: {type: ssh, host: gpu.example.org, description: Under the desk}\n    lab: {type: agent}\n")
	list := decode[api.BackendList](t, s.get(below("/backends")).ok(t, 200)).Backends
	var labels []string
	for _, b := range list {
		labels = append(labels, b.Label)
	}
	if want := []string{"local (this machine)", "gpu (ssh to gpu.example.org)", "lab (agent)"}; !slices.Equal(labels, want) {
		t.Errorf("got %v, want %v (N4)", labels, want)
	}
	if !list[0].Default || !list[0].Available || list[1].Available || list[1].Reason == "" || list[2].Agent == nil {
		t.Errorf("got %+v", list)
	}
	report := decode[api.CheckReport](t, s.do("POST", below("/backends/local/check"), "{}").ok(t, 200))
	if !report.OK || report.Backend != "local" || report.Summary == "" || len(report.Items) == 0 {
		t.Errorf("got %+v", report)
	}
	if report := decode[api.CheckReport](t, s.do("POST", below("/backends/gpu/check"), "{}").ok(t, 200)); report.OK || report.Items[0].Level != api.CheckFail {
		t.Errorf("got %+v", report)
	}
	s.do("POST", below("/backends/gqu/check"), "{}").refused(t, 404, "unknown_backend")
	s.do("POST", below("/backends/a%2Fb/check"), "{}").refused(t, 404, "unknown_backend")
	s.do("POST", below("/backends/local/check"), `{"trainer":1}`).refused(t, 422, "invalid_request")
	s.do("POST", below("/backends/local/check"), "").refused(t, 400, "bad_request")
}

func TestTrainersAndSchemas(t *testing.T) {
	s := films(t, "")
	trainers := decode[api.TrainerList](t, s.get(below("/trainers")).ok(t, 200)).Trainers
	i := slices.IndexFunc(trainers, func(t api.Trainer) bool { return t.Name == runnertest.Trainer })
	if i < 0 || trainers[i].Source != "study" || !trainers[i].Available || trainers[i].Params["properties"] == nil {
		t.Errorf("got %+v", trainers)
	}
	schemes := decode[api.SchemeList](t, s.get(below("/schemas")).ok(t, 200)).Schemas
	if len(schemes) != 1 || schemes[0].Name != runnertest.Scheme || !schemes[0].Trainable || schemes[0].NItems != 60 || schemes[0].NLabeled != 40 {
		t.Errorf("got %+v", schemes)
	}
	auto := decode[api.AutoRetrain](t, s.get(below("/auto-retrain")).ok(t, 200))
	if auto.Enabled || auto.SkipReason == "" || auto.UpdateFrequency != 25 {
		t.Errorf("got %+v", auto)
	}
	id := s.trained()
	if report := decode[api.MetricsReport](t, s.get(run(id, "/metrics")).ok(t, 200)); report.Schemas == nil || report.Curves == nil {
		t.Errorf("got %+v", report)
	}
}

// An interpreter that is not there is a sentence, not a fault of the server.
func TestMissingPython(t *testing.T) {
	c := runnertest.Study(t, "")
	c.ModelTraining.Python = "/no/such/python"
	s := serveStudy(t, c, nil)
	s.get(below("/trainers")).refused(t, 503, "python_missing")
}
