package agenttest

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"potato/api"
)

// Server answers agents over HTTP as docs/agent-protocol.md says, from memory. It trains nothing and knows no study: runs are
// put into its queue, and what agents tell of them can be looked at. It is safe for concurrent use.
type Server struct {
	// Before, when set, sees every request first; when it reports true it has answered. It may also panic with
	// http.ErrAbortHandler, as a cut connection does.
	Before func(w http.ResponseWriter, r *http.Request) bool
	// After, when set, takes the place of the answer to a request that had its effect: the answer gets lost.
	After func(w http.ResponseWriter, r *http.Request) bool
	// HeartbeatWait is how long the answer to a heartbeat is kept back.
	HeartbeatWait time.Duration
	// Unheard is how long a claimed run waits for its agent's first word before it goes back to the queue.
	Unheard time.Duration
	// MaxPredictions is the size that the server takes; 0 means any.
	MaxPredictions int64

	mu       sync.Mutex
	changed  chan struct{} // closed at the next change
	token    string
	replaced map[string]bool
	order    []api.RunID
	runs     map[api.RunID]*held
	claims   map[string]api.RunID
	asked    []api.ClaimRequest
	faults   []string
}

// held is a run as the server has it.
type held struct {
	Held
	job       api.Job
	archive   []byte
	cancel    bool
	part      []byte // of an upload in chunks
	endedWith string
	claimed   time.Time
	heard     bool // since it was claimed
}

// Held is what the server knows of a run.
type Held struct {
	Status      api.RunStatus
	Lease       string
	Agents      []string // ids of those who claimed it
	Events      []api.Event
	Predictions []byte // nil: none came
	Uploads     []string
	Finish      *api.Finish
}

// NewServer makes a server that knows one token.
func NewServer(token string) *Server {
	return &Server{
		token: token, HeartbeatWait: time.Second, Unheard: 30 * time.Second, changed: make(chan struct{}),
		replaced: map[string]bool{}, runs: map[api.RunID]*held{}, claims: map[string]api.RunID{},
	}
}

// Add puts a job into the queue. Without an archive it stays in building once it was claimed, see SetArchive.
func (s *Server) Add(job api.Job, archive []byte) {
	s.change(func() {
		job.Lease = ""
		s.order = append(s.order, job.RunID)
		s.runs[job.RunID] = &held{Held: Held{Status: api.RunQueued}, job: job, archive: archive}
	})
}

// SetArchive replaces a run's bundle, as a server does that builds it anew.
func (s *Server) SetArchive(id api.RunID, archive []byte) {
	s.change(func() { s.runs[id].archive = archive })
}

// Cancel makes every answer about the run a cancel from now on.
func (s *Server) Cancel(id api.RunID) { s.change(func() { s.runs[id].cancel = true }) }

// Requeue takes the run from whoever has it.
func (s *Server) Requeue(id api.RunID) {
	s.change(func() { s.runs[id].Status, s.runs[id].Lease = api.RunQueued, "" })
}

// GiveUp ends a run whose agent was silent for too long.
func (s *Server) GiveUp(id api.RunID) {
	s.change(func() { s.runs[id].Status = api.RunError })
}

// Register replaces the token.
func (s *Server) Register(token string) {
	s.change(func() { s.replaced[s.token], s.token = true, token })
}

// Run is how a run stands.
func (s *Server) Run(id api.RunID) Held {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.runs[id].Held
	h.Events, h.Agents, h.Uploads = slices.Clone(h.Events), slices.Clone(h.Agents), slices.Clone(h.Uploads)
	return h
}

// Claims are all questions for work so far.
func (s *Server) Claims() []api.ClaimRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

// Faults are breaches of the protocol that agents committed.
func (s *Server) Faults() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.faults)
}

func (s *Server) change(do func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	do()
	close(s.changed)
	s.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Before != nil && s.Before(w, r) {
		return
	}
	answer := &recorder{ResponseWriter: w, header: http.Header{}}
	path, ours := strings.CutPrefix(r.URL.Path, "/api/training/jobs/")
	id, what, _ := strings.Cut(path, "/")
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.mu.Lock()
	known, replaced := token == s.token, s.replaced[token]
	s.mu.Unlock()
	switch {
	case !ours:
		problem(answer, http.StatusNotFound, "not_found", "there is nothing at "+r.URL.Path)
	case replaced:
		problem(answer, http.StatusUnauthorized, "token_revoked", "this token was replaced by a newer one")
	case !known:
		problem(answer, http.StatusUnauthorized, "token_unknown", "this token is not known")
	case path == "claim":
		s.claim(answer, r, token)
	case r.Header.Get("Potato-Lease") == "":
		problem(answer, http.StatusUnprocessableEntity, "lease_missing", "the header Potato-Lease is missing")
	default:
		s.about(answer, r, api.RunID(id), what)
	}
	if s.After != nil && s.After(w, r) {
		return
	}
	answer.flush()
}

func (s *Server) claim(w http.ResponseWriter, r *http.Request, token string) {
	var q api.ClaimRequest
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.AgentID == "" || q.ClaimID == "" {
		problem(w, http.StatusUnprocessableEntity, "invalid_request", "the question cannot be read")
		return
	}
	end := time.After(time.Duration(q.WaitS) * time.Second)
	for first := true; ; first = false {
		s.mu.Lock()
		if first {
			s.asked = append(s.asked, q)
		}
		if s.replaced[token] { // while it waited
			s.mu.Unlock()
			problem(w, http.StatusUnauthorized, "token_revoked", "this token was replaced by a newer one")
			return
		}
		job, changed := s.next(q), s.changed
		s.mu.Unlock()
		if job != nil {
			write(w, http.StatusOK, job)
			return
		}
		select {
		case <-changed:
		case <-time.After(s.Unheard): // a run may have gone back
		case <-end:
			w.WriteHeader(http.StatusNoContent)
			return
		case <-r.Context().Done():
			return
		}
	}
}

// next is the job that answers the question; the caller has locked.
func (s *Server) next(q api.ClaimRequest) *api.Job {
	for _, mine := range q.Held {
		if run := s.runs[mine.RunID]; run != nil && run.Lease == mine.Lease && !run.Status.Final() && run.Status != api.RunQueued {
			return run.handOut()
		}
	}
	if id, again := s.claims[q.ClaimID]; again && !s.runs[id].Status.Final() {
		return s.runs[id].handOut()
	}
	for _, id := range s.order {
		if run := s.runs[id]; run.waits(s.Unheard) {
			run.Status, run.Lease, run.claimed, run.heard = api.RunRunning, newLease(), time.Now(), false
			run.Agents = append(run.Agents, q.AgentID)
			s.claims[q.ClaimID] = id
			return run.handOut()
		}
	}
	return nil
}

// waits reports whether the run is to be had: it is queued, or whoever claimed it was never heard of.
func (h *held) waits(unheard time.Duration) bool {
	return h.Status == api.RunQueued || h.Status == api.RunRunning && !h.heard && time.Since(h.claimed) > unheard
}

func (h *held) handOut() *api.Job {
	job := h.job
	job.Lease, job.NextSeq = h.Lease, int64(len(h.Events))+1
	return &job
}

// about answers what is said of one run: the table of docs/agent-protocol.md.
func (s *Server) about(w http.ResponseWriter, r *http.Request, id api.RunID, what string) {
	s.mu.Lock()
	run, lease := s.runs[id], r.Header.Get("Potato-Lease")
	status, code := http.StatusOK, ""
	switch {
	case run == nil:
		status, code = http.StatusNotFound, "run_not_found"
	case run.Status.Final() && what == "finish" && run.endedWith == lease:
		w.WriteHeader(http.StatusNoContent)
		s.mu.Unlock()
		return
	case run.Status.Final():
		status, code = http.StatusGone, "run_over"
	case run.Status == api.RunQueued || run.Lease != lease:
		status, code = http.StatusConflict, "lease_moved"
	case run.archive == nil && what == "bundle":
		w.Header().Set("Retry-After", "1")
		status, code = http.StatusServiceUnavailable, "bundle_not_ready"
	case run.archive == nil && what == "predictions":
		status, code = http.StatusConflict, "too_early"
	}
	if code == "" || status == http.StatusServiceUnavailable {
		run.heard = true
	}
	s.mu.Unlock()
	if code != "" {
		problem(w, status, code, fmt.Sprintf("run %s: %s", id, code))
		return
	}
	switch what {
	case "bundle":
		s.bundle(w, r, run)
	case "progress":
		s.progress(w, r, run)
	case "heartbeat":
		s.heartbeat(w, r, run)
	case "predictions":
		s.predictions(w, r, run)
	case "finish":
		s.finish(w, r, run)
	default:
		problem(w, http.StatusNotFound, "not_found", "there is no "+what)
	}
}

func (s *Server) bundle(w http.ResponseWriter, r *http.Request, run *held) {
	s.mu.Lock()
	archive := run.archive
	s.mu.Unlock()
	sum := sha256.Sum256(archive)
	w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
	w.Header().Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(sum[:])+":")
	w.Header().Set("Content-Type", "application/gzip")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(archive))
}

func (s *Server) progress(w http.ResponseWriter, r *http.Request, run *held) {
	var report api.ProgressReport
	if err := json.NewDecoder(r.Body).Decode(&report); err != nil {
		problem(w, http.StatusBadRequest, "bad_request", "the report breaks off")
		return
	}
	var a api.Answer
	s.change(func() {
		for _, e := range report.Events {
			if next := int64(len(run.Events)) + 1; e.Seq == next {
				run.Events = append(run.Events, e)
			} else if e.Seq < next && run.Events[e.Seq-1].Event != e.Event {
				s.faults = append(s.faults, fmt.Sprintf("event %d was a %s and came again as a %s", e.Seq, run.Events[e.Seq-1].Event, e.Event))
			}
		}
		a = run.answer()
	})
	write(w, http.StatusOK, a)
}

func (s *Server) heartbeat(w http.ResponseWriter, r *http.Request, run *held) {
	end := time.After(s.HeartbeatWait)
	for {
		s.mu.Lock()
		a, changed, over := run.answer(), s.changed, run.Status.Final()
		s.mu.Unlock()
		if a.Cancel || over {
			write(w, http.StatusOK, a)
			return
		}
		select {
		case <-changed:
		case <-end:
			write(w, http.StatusOK, a)
			return
		case <-r.Context().Done():
			return
		}
	}
}

func (h *held) answer() api.Answer {
	return api.Answer{Cancel: h.cancel, GraceSeconds: h.job.GraceSeconds, NextSeq: int64(len(h.Events)) + 1}
}

func (s *Server) finish(w http.ResponseWriter, r *http.Request, run *held) {
	var f api.Finish
	if err := json.NewDecoder(r.Body).Decode(&f); err != nil {
		problem(w, http.StatusBadRequest, "bad_request", "the last word breaks off")
		return
	}
	s.change(func() {
		run.Finish, run.endedWith, run.Status = &f, run.Lease, api.RunError
		switch {
		case f.Cancelled:
			run.Status = api.RunCancelled
		case f.ErrorCode == "" && run.Predictions != nil:
			run.Status = api.RunSuccess
		}
	})
	w.WriteHeader(http.StatusNoContent)
}

func newLease() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client went away
}

func problem(w http.ResponseWriter, status int, code, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "code": code, "detail": detail}) // the client went away
}
