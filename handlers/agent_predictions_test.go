package handlers_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"potato/agent/agenttest"
	"potato/api"
)

// ready is an agent whose run takes predictions, with those that are right.
func ready(t *testing.T, training string) (w *worker, good []byte) {
	t.Helper()
	w = running(serveLab(t, training, nil), nil)
	return w, predictions(t, w.bundle())
}

// kept is what the server holds of the run's predictions: rows, and files of uploads.
func (w *worker) kept() string {
	w.t.Helper()
	var files []string
	dir := filepath.Join(w.config.TrainingPath(), "runs", string(w.job.RunID))
	for _, name := range []string{"upload/part", "upload/note.json", "artifacts/predictions.jsonl"} {
		if st, err := os.Stat(filepath.Join(dir, name)); err == nil {
			files = append(files, fmt.Sprintf("%s (%d)", name, st.Size()))
		}
	}
	rows := decode[api.PredictionList](w.t, w.get(run(w.job.RunID, "/predictions")).ok(w.t, 200))
	return fmt.Sprintf("%d rows, %s", len(rows.Predictions), strings.Join(files, ", "))
}

// keeps waits until the server holds this of the run's predictions.
func (w *worker) keeps(want string) {
	w.t.Helper()
	agenttest.Wait(w.t, "the server to keep "+want, func() (bool, string) {
		got := w.kept()
		return got == want, got
	})
}

// Of what is refused nothing is kept, and each refusal has its code (G3).
func TestHostilePredictions(t *testing.T) {
	t.Parallel()
	w, good := ready(t, "  max_predictions_mb: 1\n")
	lines := strings.SplitAfter(strings.TrimSuffix(string(good), "\n"), "\n")
	first := lines[0]
	id := strings.Split(first, `"`)[3]
	var train string
	for line := range strings.Lines(string(w.bundle()["train.jsonl"])) {
		train = strings.Split(line, `"`)[3]
	}
	zip := header("Content-Encoding", "gzip")
	for name, c := range map[string]struct {
		content string
		status  int
		code    string
		changes []change
	}{
		"NaN":                    {strings.ReplaceAll(first, "0.75", "NaN"), 422, "bad_confidence", nil},
		"infinity":               {strings.ReplaceAll(first, "0.75", "-Infinity"), 422, "bad_confidence", nil},
		"over one":               {prediction(id, "positive", "1.5"), 422, "bad_confidence", nil},
		"an unknown label":       {prediction(id, "so-so", "0.5"), 422, "unknown_label", nil},
		"an unknown scheme":      {strings.Replace(first, "sentiment", "mood", 1), 422, "unknown_scheme", nil},
		"an unknown item":        {prediction("item-999", "positive", "0.5"), 422, "unknown_item", nil},
		"an item twice":          {first + first, 422, "duplicate_prediction", nil},
		"a training item":        {prediction(train, "positive", "0.5"), 422, "train_item", nil},
		"half a line":            {first + first[:20], 422, "bad_prediction", nil},
		"no JSON":                {"hello\n", 422, "bad_prediction", nil},
		"a list":                 {"[]\n", 422, "bad_prediction", nil},
		"good rows, then a bad":  {string(good) + "x\n", 422, "bad_prediction", nil},
		"too much":               {strings.Repeat("x", 1<<20+1), 413, "predictions_too_large", nil},
		"another digest":         {first, 422, "digest_mismatch", []change{header("Repr-Digest", digestOf([]byte("x")))}},
		"no digest":              {first, 422, "invalid_request", []change{func(r *http.Request) { r.Header.Del("Repr-Digest") }}},
		"a digest of MD5":        {first, 422, "digest_missing", []change{header("Repr-Digest", "md5=:AAAA:")}},
		"a digest that is none":  {first, 422, "digest_missing", []change{header("Repr-Digest", "sha-256=:AAAA:")}},
		"gzip that is none":      {first, 422, "bad_encoding", []change{zip}},
		"gzip that ends early":   {string(packed([]byte(first))[:30]), 422, "bad_encoding", []change{zip}},
		"gzip with a wrong sum":  {func() string { b := packed([]byte(first)); b[len(b)-6]++; return string(b) }(), 422, "bad_encoding", []change{zip}},
		"gzip with a tail":       {string(packed([]byte(first))) + "tail", 422, "bad_encoding", []change{zip}},
		"a bomb":                 {string(packed(bytes.Repeat([]byte("x"), 300<<20))), 413, "predictions_too_large", []change{zip}},
		"another packing":        {first, 415, "unsupported_media_type", []change{header("Content-Encoding", "br")}},
		"another kind":           {first, 415, "unsupported_media_type", []change{header("Content-Type", "application/json")}},
		"a part past the end":    {first, 422, "upload_too_long", []change{patched, header("Upload-Offset", "0"), header("Upload-Length", "10")}},
		"a part from the middle": {first, 409, "upload_offset", []change{patched, header("Upload-Offset", "10"), header("Upload-Length", "1000")}},
		"a part of too much":     {first, 413, "predictions_too_large", []change{patched, header("Upload-Offset", "0"), header("Upload-Length", "99999999")}},
		"a part without offset":  {first, 422, "invalid_request", []change{patched, header("Upload-Length", "1000")}},
		"a part before the file": {first, 422, "invalid_request", []change{patched, header("Upload-Offset", "-1"), header("Upload-Length", "1000")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.under(t)
			d := w.put([]byte(c.content), c.changes...).refused(t, c.status, c.code)
			if c.code == "predictions_too_large" && (!strings.Contains(d.Detail, "max_predictions_mb") || !strings.Contains(d.Hint, "max_predictions_mb")) {
				t.Errorf("got %q, %q: which key is to be raised?", d.Detail, d.Hint)
			}
			if got := w.kept(); got != "0 rows, " {
				t.Errorf("kept: %s", got)
			}
		})
	}
	// After all that the run is as good as before.
	w.tell(event(w.job.NextSeq, api.EventResult, func(e *api.Event) { e.Status = "success" }))
	done := decode[api.UploadOffset](t, w.put(packed(good), zip, header("Repr-Digest", digestOf(good))).ok(t, 200))
	if !done.Done || done.Offset != int64(len(good)) {
		t.Errorf("got %+v", done)
	}
	w.finish(api.Finish{}).ok(t, 204)
	w.await(w.job.RunID, api.RunSuccess)
	want := fmt.Sprintf("%d rows, artifacts/predictions.jsonl (%d)", len(lines), len(good))
	if got := w.kept(); got != want {
		t.Errorf("kept: %s, want %s", got, want)
	}
}

func patched(r *http.Request) { r.Method = http.MethodPatch }

// G3: the run's error says which key to raise.
func TestPredictionsOverTheLimitFailTheRun(t *testing.T) {
	w, _ := ready(t, "  max_predictions_mb: 1\n")
	d := w.put([]byte(strings.Repeat("x", 1<<20+1))).refused(t, 413, "predictions_too_large")
	w.finish(api.Finish{ErrorCode: d.Code, Error: d.Detail, Hint: d.Hint}).ok(t, 204)
	r := w.await(w.job.RunID, api.RunError)
	if r.ErrorCode != "predictions_too_large" || !strings.Contains(r.Error, "max_predictions_mb") || !strings.Contains(r.Hint, "max_predictions_mb") {
		t.Errorf("got %s: %s (%s)", r.ErrorCode, r.Error, r.Hint)
	}
}

func TestPredictionsInParts(t *testing.T) {
	w, good := ready(t, "")
	digest, n := digestOf(good), len(good)
	if got := w.head().ok(t, 200).Header.Get("Upload-Offset"); got != "0" {
		t.Errorf("before anything came: offset %q", got)
	}
	part := func(from, to int) api.UploadOffset {
		return decode[api.UploadOffset](t, w.patch(good[from:to], from, n, digest).ok(t, 200))
	}
	if got := part(0, 100); got.Offset != 100 || got.Done {
		t.Errorf("got %+v", got)
	}
	w.patch(good[:100], 0, n, digest).refused(t, 409, "upload_offset")
	w.patch(good[200:], 200, n, digest).refused(t, 409, "upload_offset")
	if got := w.head().Header.Get("Upload-Offset"); got != "100" {
		t.Errorf("offset %q, want 100", got)
	}
	if got := w.patch(packed(good[100:300]), 100, n, digest, header("Content-Encoding", "gzip")).ok(t, 200); !strings.Contains(got.text, `"offset":300`) {
		t.Errorf("a packed part: %s", got.text)
	}
	if got := part(300, n); !got.Done || got.Offset != int64(n) {
		t.Errorf("got %+v", got)
	}
	// The answer was lost: asked again, it is the same.
	for _, a := range []answer{w.patch(good[300:], 300, n, digest), w.patch(nil, n, n, digest), w.put(good)} {
		if got := decode[api.UploadOffset](t, a.ok(t, 200)); !got.Done || got.Offset != int64(n) {
			t.Errorf("again: %+v", got)
		}
	}
	if got := w.head().Header.Get("Upload-Offset"); got != fmt.Sprint(n) {
		t.Errorf("offset %q, want %d", got, n)
	}
	if got := w.kept(); !strings.HasSuffix(got, fmt.Sprintf("artifacts/predictions.jsonl (%d)", n)) {
		t.Errorf("kept: %s", got)
	}
}

// Parts of two files never become one.
func TestPartsOfAnotherFile(t *testing.T) {
	w, good := ready(t, "")
	n := len(good)
	other := bytes.Clone(good)
	copy(other, `{"instance_id":"other`)
	w.patch(other[:100], 0, n, digestOf(other)).ok(t, 200)
	w.patch(good[100:], 100, n, digestOf(good)).refused(t, 422, "upload_changed")
	if got := w.kept(); got != "0 rows, " {
		t.Errorf("kept: %s", got)
	}
	w.patch(other[:100], 0, n, digestOf(other)).ok(t, 200)
	w.patch(good[:50], 0, n, digestOf(good)).ok(t, 200) // begun anew
	if got := w.head().Header.Get("Upload-Offset"); got != "50" {
		t.Errorf("offset %q, want 50", got)
	}
	w.patch(good[50:], 50, n, digestOf(good)).ok(t, 200)
	// One that lies about what it is comes to nothing at its end.
	v, good := ready(t, "")
	v.patch(good[:100], 0, len(good), digestOf([]byte("x"))).ok(t, 200)
	v.patch(good[100:], 100, len(good), digestOf([]byte("x"))).refused(t, 422, "digest_mismatch")
	if got := v.kept(); got != "0 rows, " {
		t.Errorf("kept: %s", got)
	}
}

// rawUpload begins an upload of n bytes and sends only a part of it.
func (w *worker) rawUpload(t *testing.T, head, part string, n int) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	must(t, err)
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nPotato-Lease: %s\r\nContent-Type: application/x-ndjson\r\n%sContent-Length: %d\r\n\r\n%s",
		strings.SplitN(head, "\n", 2)[0], w.token, w.job.Lease, strings.SplitN(head, "\n", 2)[1], n, part)
	must(t, err)
	return conn
}

// Half an upload that breaks off: of a whole nothing is kept, of a part what had come.
func TestHalfUploads(t *testing.T) {
	t.Parallel()
	w, good := ready(t, "")
	whole := fmt.Sprintf("PUT %s\nRepr-Digest: %s\r\n", w.path("predictions"), digestOf(good))
	conn := w.rawUpload(t, whole, string(good[:100]), len(good))
	w.keeps("0 rows, upload/part (100)")
	must(t, conn.Close())
	w.keeps("0 rows, ")
	part := fmt.Sprintf("PATCH %s\nRepr-Digest: %s\r\nUpload-Offset: 0\r\nUpload-Length: %d\r\n", w.path("predictions"), digestOf(good), len(good))
	must(t, w.rawUpload(t, part, string(good[:150]), len(good)).Close())
	agenttest.Wait(t, "what had come of the part", func() (bool, string) {
		have := w.head().Header.Get("Upload-Offset")
		return have == "150", have
	})
	w.patch(good[150:], 150, len(good), digestOf(good)).ok(t, 200)
}

// An agent whose connection broke unnoticed uploads again, while the server still waits on the old line: the new one wins.
func TestNewerUploadWins(t *testing.T) {
	t.Parallel()
	w, good := ready(t, "")
	whole := fmt.Sprintf("PUT %s\nRepr-Digest: %s\r\n", w.path("predictions"), digestOf(good))
	conn := w.rawUpload(t, whole, string(good[:100]), len(good))
	defer conn.Close()
	w.keeps("0 rows, upload/part (100)")
	w.put(good).ok(t, 200)
	must(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	line, _ := bufio.NewReader(conn).ReadString('\n')
	if !strings.Contains(line, "503") {
		t.Errorf("the old line was answered %q, want 503", line)
	}
	if got := w.kept(); !strings.Contains(got, "artifacts/predictions.jsonl") {
		t.Errorf("kept: %s", got)
	}
}

// Refusals come before the body: who asks first does not send in vain (T42).
func TestRefusalBeforeTheBody(t *testing.T) {
	w, _ := ready(t, "  max_predictions_mb: 1\n")
	head := fmt.Sprintf("PUT %s\nExpect: 100-continue\r\nRepr-Digest: %s\r\n", w.path("predictions"), digestOf(nil))
	conn := w.rawUpload(t, head, "", 5<<20)
	defer conn.Close()
	must(t, conn.SetReadDeadline(time.Now().Add(10*time.Second)))
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	must(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if resp.StatusCode != 413 || !strings.Contains(string(text), "predictions_too_large") {
		t.Errorf("got %s %s, %v", resp.Status, text, err)
	}
}

// The very client of the agents, against the very server (contract of both).
func TestClientAndServer(t *testing.T) {
	t.Parallel()
	l := serveLab(t, "", nil)
	id := l.on("lab", nil)
	hc, err := api.NewHTTPClient("")
	must(t, err)
	defer hc.CloseIdleConnections()
	c := &api.Client{BaseURL: l.url, Token: l.tokens["lab"], HTTP: hc}
	job, err := c.Claim(t.Context(), api.ClaimRequest{AgentID: "a", ClaimID: "c", Host: "gpu-box", Version: "1", WaitS: 5})
	must(t, err)
	dir := t.TempDir()
	bundle, err := c.Bundle(t.Context(), *job, dir)
	must(t, err)
	files := map[string][]byte{}
	for _, split := range []string{"val", "test"} {
		files[split+".jsonl"], err = os.ReadFile(filepath.Join(bundle, split+".jsonl"))
		must(t, err)
	}
	path := filepath.Join(dir, "predictions.jsonl")
	must(t, os.WriteFile(path, predictions(t, files), 0o600))
	null := map[string]*float64{"train_loss": nil}
	a, err := c.Progress(t.Context(), *job, []api.Event{event(job.NextSeq, api.EventResult, func(e *api.Event) { e.Status, e.Metrics = "success", null })})
	must(t, err)
	if a.NextSeq != job.NextSeq+1 {
		t.Errorf("got %+v", a)
	}
	_, err = c.Heartbeat(t.Context(), *job)
	must(t, err)
	must(t, c.Predictions(t.Context(), *job, path))
	must(t, c.Predictions(t.Context(), *job, path)) // its answer was lost
	for range 2 {
		must(t, c.Finish(t.Context(), *job, api.Finish{Host: "gpu-box"}))
	}
	l.await(id, api.RunSuccess)
	if _, err := c.Heartbeat(t.Context(), *job); !api.HasCode(err, "run_over") {
		t.Errorf("after the end: %v", err)
	}
}

// T43: a download that was cut goes on, and one whose bundle changed does not.
func TestBundleRanges(t *testing.T) {
	w, _ := ready(t, "")
	whole := w.say("GET", "bundle", nil).ok(t, 200)
	text, etag := []byte(whole.text), whole.Header.Get("ETag")
	if whole.Header.Get("Repr-Digest") != digestOf(text) || !strings.HasPrefix(etag, `"`) || whole.Header.Get("Accept-Ranges") != "bytes" ||
		whole.Header.Get("Content-Encoding") != "" {
		t.Errorf("got %v", whole.Header)
	}
	head := w.say("HEAD", "bundle", nil).ok(t, 200)
	if head.text != "" || head.ContentLength != int64(len(text)) || head.Header.Get("Repr-Digest") != digestOf(text) {
		t.Errorf("HEAD: %v", head.Header)
	}
	at := rand.IntN(len(text))
	rest := w.say("GET", "bundle", nil, header("Range", fmt.Sprintf("bytes=%d-", at)), header("If-Range", etag)).ok(t, 206)
	if !bytes.Equal([]byte(rest.text), text[at:]) || rest.Header.Get("ETag") != etag || rest.Header.Get("Repr-Digest") != digestOf(text) {
		t.Errorf("from %d: %d bytes, %v", at, len(rest.text), rest.Header)
	}
	for name, changes := range map[string][]change{
		"another ETag":   {header("Range", "bytes=5-"), header("If-Range", `"x"`)},
		"several ranges": {header("Range", "bytes=0-1,3-4")},
		"packed":         {header("Accept-Encoding", "gzip")},
		"other units":    {header("Range", "lines=1-2")},
	} {
		if a := w.say("GET", "bundle", nil, changes...); a.StatusCode != 200 || !bytes.Equal([]byte(a.text), text) {
			t.Errorf("%s: %d, %d bytes", name, a.StatusCode, len(a.text))
		}
	}
	d := w.say("GET", "bundle", nil, header("Range", "bytes=99999999-"))
	d.refused(t, 416, "bad_range")
	if got := d.Header.Get("Content-Range"); got != fmt.Sprintf("bytes */%d", len(text)) {
		t.Errorf("Content-Range is %q", got)
	}
	names := []string{}
	for name := range unpack(t, text) {
		names = append(names, name)
	}
	if !slices.Contains(names, "manifest.json") || !slices.Contains(names, "train.jsonl") || !slices.Contains(names, "trainers/steered.py") {
		t.Errorf("the bundle has %v, want the rows and the study's own trainers (S3)", names)
	}
}
