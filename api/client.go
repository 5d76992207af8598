package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// Client is an agent's way to its server: Claim asks for work, the other methods are about a job that it got. Which
// errors are worth another try shows in their Kind: unavailable, too many and internal ones are. It is safe for
// concurrent use.
type Client struct {
	BaseURL string       // the server's, see ParseServerURL
	Token   string       // of the backend
	HTTP    *http.Client // see NewHTTPClient; nil: one with its defaults

	// OnTransfer, when set, hears how far the transfer of a large file is: "bundle" or "predictions".
	OnTransfer func(run RunID, what string, done, total int64)

	CallTimeout  time.Duration // for an answer that is not kept back; default 30 s
	StallTimeout time.Duration // a transfer that moves nothing for so long has broken off; default 60 s
	StoreTimeout time.Duration // for the server to check and store predictions that it has; default 10 min
	RetryAfter   time.Duration // pause after a download broke off, doubled each time up to 5 s; default 500 ms
}

const (
	agentRoutes    = "/api/training/jobs"
	leaseHeader    = "Potato-Lease"
	heartbeatWait  = 10 * time.Second // the longest a heartbeat's answer is kept back
	maxAnswer      = 16 << 20
	maxProblem     = 64 << 10
	typeJSON       = "application/json"
	typeNDJSON     = "application/x-ndjson"
	typeProblem    = "application/problem+json"
	defaultCall    = 30 * time.Second
	defaultStall   = 60 * time.Second
	defaultStore   = 10 * time.Minute
	defaultPause   = 500 * time.Millisecond
	longestPause   = 5 * time.Second
	clientName     = "potato-agent"
	digestHeader   = "Repr-Digest"
	bundleName     = "bundle"
	predictionsDoc = "predictions"
)

// Claim asks for work. It returns nil when there was none within q.WaitS.
func (c *Client) Claim(ctx context.Context, q ClaimRequest) (*Job, error) {
	var job Job
	limit := c.callTimeout() + time.Duration(q.WaitS)*time.Second
	status, err := c.call(ctx, limit, http.MethodPost, "/claim", "", q, &job)
	if err != nil || status == http.StatusNoContent {
		return nil, err
	}
	if !job.RunID.Valid() || job.Lease == "" {
		return nil, notTheServer("its answer is no job")
	}
	return &job, nil
}

// Progress implements agent.Desk. When the report is refused for its size, a part of it is sent, as the answer shows.
func (c *Client) Progress(ctx context.Context, job Job, events []Event) (Answer, error) {
	var a Answer
	_, err := c.call(ctx, c.callTimeout(), http.MethodPost, jobPath(job, "progress"), job.Lease, ProgressReport{Events: events}, &a)
	var refused *Error
	if errors.As(err, &refused) && refused.Kind == KindTooLarge && len(events) > 1 {
		return c.Progress(ctx, job, events[:len(events)/2])
	}
	return a, err
}

// Heartbeat implements agent.Desk.
func (c *Client) Heartbeat(ctx context.Context, job Job) (Answer, error) {
	var a Answer
	_, err := c.call(ctx, c.callTimeout()+heartbeatWait, http.MethodPost, jobPath(job, "heartbeat"), job.Lease, nil, &a)
	return a, err
}

// Finish implements agent.Desk.
func (c *Client) Finish(ctx context.Context, job Job, f Finish) error {
	_, err := c.call(ctx, 2*c.callTimeout(), http.MethodPost, jobPath(job, "finish"), job.Lease, f, nil)
	return err
}

func jobPath(job Job, what string) string { return "/" + string(job.RunID) + "/" + what }

// call sends in as JSON, unless it is nil, and reads the answer into out.
func (c *Client) call(ctx context.Context, limit time.Duration, method, path, lease string, in, out any) (status int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errNoAnswer)
	defer cancel()
	var body bytes.Buffer
	if in != nil {
		enc := json.NewEncoder(&body)
		enc.SetEscapeHTML(false) // logs are full of < and >, and a report's size is limited
		if err := enc.Encode(in); err != nil {
			return 0, Invalidf("bad_request", "the agent cannot write its own message: %v", err)
		}
	}
	req, err := c.request(ctx, method, path, lease, body.Bytes())
	if err != nil {
		return 0, err
	}
	resp, err := c.do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	if out == nil || resp.StatusCode == http.StatusNoContent {
		_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxProblem)) // so that the connection can be used again
		return resp.StatusCode, nil
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return 0, c.explain(ctx, err)
	}
	if json.Unmarshal(answer, out) != nil {
		return 0, notTheServer("its answer is not JSON")
	}
	return resp.StatusCode, nil
}

func (c *Client) request(ctx context.Context, method, path, lease string, body []byte) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.BaseURL, "/")+agentRoutes+path, bytes.NewReader(body))
	if err != nil {
		return nil, Invalidf("bad_server_url", "the server's URL cannot be used").WithCause(err)
	}
	req.Header.Set("Authorization", "Bearer "+c.Token)
	req.Header.Set("User-Agent", clientName)
	req.Header.Set("Accept", typeJSON)
	if lease != "" {
		req.Header.Set(leaseHeader, lease)
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", typeJSON)
	}
	return req, nil
}

// do sends a request; an answer that is no success becomes an error.
func (c *Client) do(req *http.Request) (*http.Response, error) {
	hc := c.HTTP
	if hc == nil {
		hc = defaultHTTP()
	}
	resp, err := hc.Do(req)
	if err != nil {
		return nil, c.explain(req.Context(), err)
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close() //nolint:errcheck // only read from
	return nil, c.refusal(resp)
}

func (c *Client) callTimeout() time.Duration { return orElse(c.CallTimeout, defaultCall) }

func orElse(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}
