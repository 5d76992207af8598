package handlers_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"potato/agent/agenttest"
	"potato/api"
)

func TestCreateRun(t *testing.T) {
	s := films(t, "")
	a := s.do("POST", below("/runs"), order(nil)).ok(t, 202)
	started := decode[api.RunStarted](t, a)
	if !started.RunID.Valid() || !started.Started || started.Queue != nil {
		t.Errorf("got %+v", started)
	}
	if got, want := a.Header.Get("Location"), run(started.RunID, ""); got != want {
		t.Errorf("Location is %q, want %q", got, want)
	}
	r := s.await(started.RunID, api.RunSuccess)
	if r.Trigger != api.TriggerAPI || r.CreatedBy != "admin" || r.NTrain == 0 || r.FinishedAt == nil || r.Duration == nil {
		t.Errorf("got %+v", r)
	}
	page := decode[api.RunStarted](t, s.do("POST", below("/runs"), order(nil), header("X-Potato-Client", "page")).ok(t, 202))
	if got := s.run(page.RunID).Trigger; got != api.TriggerPage {
		t.Errorf("the page's run has trigger %q", got)
	}
}

// Orders as programs send them that were written for the annotation tool's own training (PEER.md §6).
func TestCreateRunAsThePeerTakesIt(t *testing.T) {
	s := films(t, "")
	for _, body := range []string{
		`{"trainer":"steered","schemas":["sentiment"],"params":{},"accept_licence":true}`,
		`{"trainer":"steered","schemas":"sentiment","accept_licence":false}`,
		"\n{ \"schemas\" : \"sentiment\", \"trainer\" : \"steered\" }\n",
	} {
		id := decode[api.RunStarted](t, s.do("POST", below("/runs"), body).ok(t, 202)).RunID
		if got := s.run(id).SchemaNames; len(got) != 1 || got[0] != "sentiment" {
			t.Errorf("%s: trains %v", body, got)
		}
	}
	long := `{"trainer":"steered","schemas":"sentiment","params":{"fail":"` + strings.Repeat("x", 2<<20) + `"}}`
	s.do("POST", below("/runs"), long).refused(t, 413, "too_large")
	s.do("POST", below("/runs"), `{"trainer":"steered","schemas":"sentiment"`).refused(t, 400, "bad_request")
}

func TestCreateRunRefuses(t *testing.T) {
	s := films(t, "  backends:\n    gpu: {type: ssh, host: gpu.example.org}\n")
	with := func(change func(object)) object {
		o := order(nil)
		change(o)
		return o
	}
	for name, c := range map[string]struct {
		body   any
		status int
		code   string
		path   string
	}{
		"unknown backend":   {with(func(o object) { o["backend"] = "gqu" }), 409, "unknown_backend", "body.backend"},
		"remote backend":    {with(func(o object) { o["backend"] = "gpu" }), 409, "backend_unavailable", "body.backend"},
		"unknown trainer":   {with(func(o object) { o["trainer"] = "steeered" }), 422, "unknown_trainer", "body.trainer"},
		"unknown scheme":    {with(func(o object) { o["schemas"] = []string{"sentimet"} }), 422, "bad_schemas", "body.schemas"},
		"unknown parameter": {order(object{"gaet": "x"}), 422, "bad_params", "body.params"},
		"wrong parameter":   {order(object{"junk": "x"}), 422, "bad_params", "body.params"},
		"no trainer":        {with(func(o object) { delete(o, "trainer") }), 422, "invalid_request", "body"},
		"empty trainer":     {with(func(o object) { o["trainer"] = "" }), 422, "invalid_request", "body.trainer"},
		"no schemas":        {with(func(o object) { o["schemas"] = []string{} }), 422, "invalid_request", "body.schemas"},
		"schemas as number": {with(func(o object) { o["schemas"] = 1 }), 422, "invalid_request", "body.schemas"},
		"a name as text":    {with(func(o object) { o["schemas"] = "sentimet" }), 422, "bad_schemas", "body.schemas"},
		"no name":           {with(func(o object) { o["schemas"] = "" }), 422, "bad_schemas", "body.schemas"},
		"schemas null":      {with(func(o object) { o["schemas"] = nil }), 422, "invalid_request", "body.schemas"},
		"params as list":    {with(func(o object) { o["params"] = []int{1} }), 422, "invalid_request", "body.params"},
		"another property":  {with(func(o object) { o["trainr"] = "x" }), 422, "invalid_request", "body.trainr"},
		"list":              {"[]", 422, "invalid_request", "body"},
		"null":              {"null", 422, "invalid_request", "body"},
		"no JSON":           {"{trainer}", 400, "bad_request", ""},
		"half":              {`{"trainer":"steered"`, 400, "bad_request", ""},
		"nothing":           {"", 400, "bad_request", ""},
		"too large":         {`{"trainer":"` + strings.Repeat("x", 2<<20) + `"}`, 413, "too_large", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := s.do("POST", below("/runs"), c.body).refused(t, c.status, c.code)
			if c.path != "" && !slices.ContainsFunc(d.Errors, func(p api.Problem) bool { return strings.HasPrefix(p.Path, c.path) && p.Message != "" }) {
				t.Errorf("no error at %s: %+v", c.path, d.Errors)
			}
		})
	}
	s.do("POST", below("/runs"), order(nil), header("Content-Type", "text/plain")).refused(t, 415, "unsupported_media_type")
	s.do("POST", below("/runs"), order(nil), header("X-Potato-Client", "auto")).refused(t, 422, "invalid_request")
	if list := decode[api.RunList](t, s.get(below("/runs"))); len(list.Runs) != 0 {
		t.Errorf("refused requests left %d runs", len(list.Runs))
	}
	d := s.do("POST", below("/runs"), with(func(o object) { o["trainer"] = "steeered" })).problem(t)
	if d.Errors[0].Suggestion != "steered" {
		t.Errorf("no suggestion: %+v", d.Errors)
	}
}

// Eight at once: all are taken, one trains at a time (P1).
func TestP1EightPostsAtOnce(t *testing.T) {
	s := films(t, "")
	ids := make([]api.RunID, 8)
	started := make([]bool, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			a := decode[api.RunStarted](t, s.do("POST", below("/runs"), order(nil)))
			ids[i], started[i] = a.RunID, a.Started
		})
	}
	wg.Wait()
	runs := make([]api.Run, len(ids))
	for i, id := range ids {
		runs[i] = s.await(id, api.RunSuccess)
	}
	slices.SortFunc(runs, func(a, b api.Run) int { return int((*a.StartedAt - *b.StartedAt) * 1e6) })
	for i := 1; i < len(runs); i++ {
		if *runs[i].StartedAt < *runs[i-1].FinishedAt {
			t.Errorf("run %s started at %f, before %s ended at %f", runs[i].RunID, *runs[i].StartedAt, runs[i-1].RunID, *runs[i-1].FinishedAt)
		}
	}
}

func TestQueue(t *testing.T) {
	s := films(t, "")
	params, open := s.gate()
	first := s.train(params)
	s.await(first, api.RunRunning)
	a := decode[api.RunStarted](t, s.do("POST", below("/runs"), order(nil)).ok(t, 202))
	if a.Started || a.Queue == nil || a.Queue.Position != 1 {
		t.Errorf("got %+v", a)
	}
	if q := s.run(a.RunID).Queue; q == nil || q.Position != 1 || q.WaitingFor == "" {
		t.Errorf("queue %+v", q)
	}
	status := decode[api.Status](t, s.get(below("/status")).ok(t, 200))
	if status.State != api.RunRunning || status.RunID == nil || *status.RunID != first || len(status.Running) != 1 || len(status.Queued) != 1 || status.Version != "1.2.3" {
		t.Errorf("status %+v", status)
	}
	metrics := s.get("/metrics").ok(t, 200).text
	for _, line := range []string{`potato_runs{status="running"} 1`, `potato_runs{status="queued"} 1`, `potato_runs{status="success"} 0`, "potato_queue_length 1"} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %q in the metrics", line)
		}
	}
	before := s.run(first).Duration
	agenttest.Wait(t, "the duration to grow", func() (bool, string) {
		now := s.run(first).Duration
		return *now > *before, fmt.Sprint(*now)
	})
	s.do("DELETE", run(first, ""), nil).refused(t, 409, "run_not_over")
	if got := decode[map[string]any](t, s.do("POST", run(a.RunID, "/cancel"), nil).ok(t, 200)); got["cancelled"] != true || got["run_id"] != string(a.RunID) {
		t.Errorf("got %v", got)
	}
	s.await(a.RunID, api.RunCancelled)
	s.do("POST", run(first, "/cancel"), nil).ok(t, 200)
	s.await(first, api.RunCancelled)
	s.do("POST", run(first, "/cancel"), nil).refused(t, 409, "run_over")
	open()
	s.do("DELETE", run(first, ""), nil).ok(t, 204)
	s.get(run(first, "")).refused(t, 404, "run_not_found")
}

func TestListRuns(t *testing.T) {
	s := films(t, "")
	var ids []api.RunID
	for range 5 {
		ids = append(ids, s.trained())
	}
	failed := s.train(object{"fail": "there is a fault in the middle"})
	s.await(failed, api.RunError)
	ids = append(ids, failed)
	list := func(query string) []api.RunID {
		t.Helper()
		var got []api.RunID
		for _, r := range decode[api.RunList](t, s.get(below("/runs?"+query)).ok(t, 200)).Runs {
			got = append(got, r.RunID)
		}
		return got
	}
	newest := slices.Clone(ids)
	slices.Reverse(newest)
	for query, want := range map[string][]api.RunID{
		"":                                newest,
		"sort=created_at":                 ids,
		"limit=2":                         newest[:2],
		"status=error":                    {failed},
		"q=fault%20in%20the":              {failed},
		"trainer=nobody":                  nil,
		"trainer=steered&backend=local":   newest,
		"q=" + string(ids[2]):             {ids[2]},
		"status=success&sort=-created_at": newest[1:],
	} {
		if got := list(query); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	for _, sort := range []string{"-created_at", "created_at", "-score", "score", "-duration", "duration"} {
		var got []api.RunID
		next := ""
		for range 10 {
			page := decode[api.RunList](t, s.get(below("/runs?limit=2&sort="+sort+"&cursor="+next)).ok(t, 200))
			for _, r := range page.Runs {
				got = append(got, r.RunID)
			}
			if next = page.Next; next == "" {
				break
			}
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(ids))
		if !slices.Equal(got, want) {
			t.Errorf("pages by %s have %v, want %v", sort, got, want)
		}
	}
	// P4
	for query, path := range map[string]string{
		"limit=abc": "query.limit", "limit=0": "query.limit", "limit=-1": "query.limit", "limit=501": "query.limit",
		"limit=99999999999999999999": "query.limit", "limit=1.5": "query.limit", "sort=name": "query.sort",
		"status=done": "query.status", "q=" + strings.Repeat("x", 201): "query.q",
	} {
		if d := s.get(below("/runs?"+query)).refused(t, 422, "invalid_request"); len(d.Errors) != 1 || d.Errors[0].Path != path {
			t.Errorf("%.20s: %+v", query, d.Errors)
		}
	}
	s.get(below("/runs?cursor=nonsense")).refused(t, 422, "bad_cursor")
}

func TestUnknownRuns(t *testing.T) {
	s := films(t, "")
	for _, op := range []string{"GET ", "DELETE ", "POST /cancel", "GET /events", "GET /log", "GET /metrics", "GET /predictions", "GET /predictions?format=csv",
		"DELETE /predictions", "GET /artifacts", "GET /artifact?path=x", "POST /writeback"} {
		method, rest, _ := strings.Cut(op, " ")
		var body any
		if rest == "/writeback" {
			body = "{}"
		}
		s.do(method, run(noRun, rest), body).refused(t, 404, "run_not_found")
		d := s.do(method, run("..%2f..%2fetc", rest), body).refused(t, 422, "invalid_request")
		if len(d.Errors) != 1 || d.Errors[0].Path != "path.run_id" {
			t.Errorf("%s: %+v", op, d.Errors)
		}
	}
	s.get(run(noRun, "/events"), header("Accept", "text/event-stream")).refused(t, 404, "run_not_found")
}

// What nobody foresaw is told to the log alone.
func TestInternalErrorsAreSilent(t *testing.T) {
	s := films(t, "")
	id := s.trained()
	must(t, s.db.Close())
	a := s.get(run(id, ""))
	d := a.refused(t, 500, "internal")
	if d.Detail != "internal error" || strings.Contains(a.text, "sql") {
		t.Errorf("got %s", a.text)
	}
	name := a.Header.Get("X-Request-Id")
	if name == "" || !strings.HasSuffix(d.Hint, "request="+name) || !strings.Contains(s.logs.String(), "request="+name) || !strings.Contains(s.logs.String(), "database is closed") {
		t.Errorf("request %q, hint %q, log:\n%s", name, d.Hint, s.logs)
	}
}

// Fifty people at once: nobody is told that the server is at fault (T44).
func TestT44ManyAtOnce(t *testing.T) {
	s := films(t, "  max_concurrent_runs: 4\n")
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen := map[string]int{}
	for i := range 50 {
		wg.Go(func() {
			for n := range 6 {
				var a answer
				switch (i + n) % 5 {
				case 0:
					if a = s.do("POST", below("/runs"), order(nil)); a.StatusCode == 202 && n%2 == 0 {
						s.do("POST", run(decode[api.RunStarted](t, a).RunID, "/cancel"), nil)
					}
				case 1:
					a = s.get(below("/runs?limit=20&q=steer"))
				case 2:
					a = s.get(below("/status"))
				case 3:
					for _, r := range decode[api.RunList](t, s.get(below("/runs?status=success&limit=1"))).Runs {
						s.get(run(r.RunID, "/predictions?limit=5"))
						a = s.do("DELETE", run(r.RunID, ""), nil)
					}
				case 4:
					a = s.get(below("/schemas"))
				}
				if a.Response != nil {
					mu.Lock()
					seen[fmt.Sprint(a.Request.Method, a.StatusCode)]++
					mu.Unlock()
					if a.StatusCode >= 500 {
						t.Errorf("%s %s: %d %s", a.Request.Method, a.Request.URL, a.StatusCode, a.text)
					}
				}
			}
		})
	}
	wg.Wait()
	if seen["POST202"] != 60 || seen["GET200"] != 180 {
		t.Errorf("60 runs were to be started and 180 answers read: %v", seen)
	}
}
