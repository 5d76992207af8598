package handlers_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
	"potato/handlers"
	"potato/project"
	"potato/runners"
	"potato/runners/runnertest"
	"potato/supervisor"
)

const labs = "  backends:\n    lab: {type: agent}\n    other: {type: agent}\n"

// lab is a server of a study with two agent backends, lab and other.
type lab struct {
	*study
	tokens map[string]string
}

func serveLab(t testing.TB, training string, adapt func(*supervisor.Options)) *lab {
	t.Helper()
	return serveLabOn(t, runnertest.Study(t, labs+training), adapt)
}

func serveLabOn(t testing.TB, c *project.Config, adapt func(*supervisor.Options)) *lab {
	t.Helper()
	s := serveStudy(t, c, func(o *supervisor.Options) {
		o.Runners[api.BackendAgent] = runners.NewPoll(runners.PollOptions{DB: o.DB})
		o.HeartbeatWait, o.BundleWait = 200*time.Millisecond, 20*time.Millisecond
		if adapt != nil {
			adapt(o)
		}
	})
	l := &lab{study: s, tokens: map[string]string{}}
	l.register("lab")
	l.register("other")
	return l
}

func (l *lab) register(backend string) string {
	l.t.Helper()
	issued := decode[api.IssuedToken](l.t, l.do("POST", below("/backends/"+backend+"/token"), nil).ok(l.t, 201))
	l.tokens[backend] = issued.Token
	return issued.Token
}

// on starts a run on a backend.
func (l *lab) on(backend string, params object) api.RunID {
	l.t.Helper()
	o := order(params)
	o["backend"] = backend
	return decode[api.RunStarted](l.t, l.do("POST", below("/runs"), o).ok(l.t, 202)).RunID
}

// worker is an agent that does what a test says, by nothing but HTTP.
type worker struct {
	*lab
	token string
	id    string
	job   api.Job
}

func (l *lab) agent(backend, id string) *worker {
	return &worker{lab: l, token: l.tokens[backend], id: id}
}

// under is the agent as a subtest sees it.
func (w *worker) under(t testing.TB) *worker {
	server := *w.server
	server.t = t
	study := *w.study
	study.server = &server
	return &worker{lab: &lab{study: &study, tokens: w.tokens}, token: w.token, id: w.id, job: w.job}
}

func bearer(token string) change {
	return func(r *http.Request) {
		r.Header.Del("X-API-Key")
		r.Header.Set("Authorization", "Bearer "+token)
	}
}

func lease(of string) change { return header("Potato-Lease", of) }

func (w *worker) ask(claimID string, wait int, held ...api.Held) answer {
	w.t.Helper()
	q := api.ClaimRequest{AgentID: w.id, ClaimID: claimID, Host: "gpu-box", Version: "1", WaitS: wait, Held: held}
	return w.do("POST", handlers.AgentPrefix+"/jobs/claim", q, bearer(w.token))
}

// claim gets a job, which has to be there.
func (w *worker) claim(claimID string) *worker {
	w.t.Helper()
	w.job = decode[api.Job](w.t, w.ask(claimID, 10).ok(w.t, 200))
	return w
}

func (w *worker) path(what string) string {
	return handlers.AgentPrefix + "/jobs/" + string(w.job.RunID) + "/" + what
}

// say sends one of the messages about the job.
func (w *worker) say(method, what string, body any, changes ...change) answer {
	w.t.Helper()
	return w.do(method, w.path(what), body, append([]change{bearer(w.token), lease(w.job.Lease)}, changes...)...)
}

func (w *worker) tell(events ...api.Event) api.Answer {
	w.t.Helper()
	return decode[api.Answer](w.t, w.say("POST", "progress", api.ProgressReport{Events: events}).ok(w.t, 200))
}

func event(seq int64, kind api.EventType, fill func(*api.Event)) api.Event {
	e := api.Event{V: 1, Event: kind, T: float64(time.Now().UnixMilli()) / 1000, Seq: seq}
	if fill != nil {
		fill(&e)
	}
	return e
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha-256=:" + base64.StdEncoding.EncodeToString(sum[:]) + ":"
}

func (w *worker) put(content []byte, changes ...change) answer {
	w.t.Helper()
	changes = append([]change{header("Content-Type", "application/x-ndjson"), header("Repr-Digest", digestOf(content))}, changes...)
	return w.say("PUT", "predictions", string(content), changes...)
}

func (w *worker) patch(part []byte, at, total int, digest string, changes ...change) answer {
	w.t.Helper()
	changes = append([]change{
		header("Content-Type", "application/x-ndjson"), header("Repr-Digest", digest),
		header("Upload-Offset", fmt.Sprint(at)), header("Upload-Length", fmt.Sprint(total)),
	}, changes...)
	return w.say("PATCH", "predictions", string(part), changes...)
}

func (w *worker) head() answer { return w.say("HEAD", "predictions", nil) }

func packed(content []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(content)
	_ = z.Close()
	return b.Bytes()
}

// bundle downloads the job's bundle, once it is there, and unpacks it.
func (w *worker) bundle() map[string][]byte {
	w.t.Helper()
	w.built()
	return unpack(w.t, []byte(w.say("GET", "bundle", nil).ok(w.t, 200).text))
}

func (w *worker) built() {
	w.t.Helper()
	agenttest.Wait(w.t, "the bundle", func() (bool, string) {
		r := w.run(w.job.RunID)
		return r.Status == api.RunRunning, string(r.Status)
	})
}

func unpack(t testing.TB, archive []byte) map[string][]byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(archive))
	must(t, err)
	files := map[string][]byte{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		must(t, err)
		files[h.Name], err = io.ReadAll(r)
		must(t, err)
	}
}

// predictions answers positive for every item of the bundle but the training items.
func predictions(t testing.TB, bundle map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(bundle)) {
		if split := strings.TrimSuffix(path.Base(name), ".jsonl"); split != api.SplitVal && split != api.SplitTest && split != api.SplitUnlabeled {
			continue
		}
		for line := range strings.Lines(string(bundle[name])) {
			var row api.Row
			must(t, json.Unmarshal([]byte(line), &row))
			b.WriteString(prediction(row.InstanceID, "positive", "0.75"))
		}
	}
	return b.Bytes()
}

func prediction(id, label, confidence string) string {
	return fmt.Sprintf(`{"instance_id":%q,"schema_name":%q,"payload":{"label":%q,"confidence":%s,"scores":{%q:%s}},"confidence":%s}`+"\n",
		id, runnertest.Scheme, label, confidence, label, confidence, confidence)
}

// train does the whole of a job as a good agent does.
func (w *worker) train() {
	w.t.Helper()
	files := w.bundle()
	next := w.job.NextSeq
	w.tell(
		event(next, api.EventStatus, func(e *api.Event) { e.Step = "fitting" }),
		event(next+1, api.EventLog, func(e *api.Event) { e.Msg, e.Source, e.Level = "hello from the agent", "agent", "info" }),
		event(next+2, api.EventArtifact, func(e *api.Event) { size := int64(4711); e.Path, e.Bytes = "model.pkl", &size }),
		event(next+3, api.EventResult, func(e *api.Event) { e.Status, e.Device, e.PredictionsFile = "success", "cuda:0", "predictions.jsonl" }),
	)
	w.put(predictions(w.t, files)).ok(w.t, 200)
	w.finish(api.Finish{}).ok(w.t, 204)
}

func (w *worker) finish(f api.Finish) answer {
	w.t.Helper()
	if f.ErrorCode == "" && !f.Cancelled {
		zero := 0
		f.ExitCode = &zero
	}
	f.Host, f.ArtifactURI, f.Environment = "gpu-box", "gpu-box:/home/me/"+string(w.job.RunID)+"/artifacts", map[string]string{"python": "3.12.1", "device": "cuda:0"}
	return w.say("POST", "finish", f)
}
