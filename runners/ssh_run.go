package runners

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"potato/agent"
	"potato/api"
	"potato/project"
	"potato/runners/hosts"
)

// Home is where a run's agent reports: the agent's routes and nothing else, and the token that speaks for that run alone.
type Home struct {
	Handler http.Handler
	Token   string
	Release func() // the token is of no use from then on
}

// probeTime bounds the look at a host that a run begins with.
const probeTime = 60 * time.Second

// prepared is a host that is ready for a run.
type prepared struct {
	remote
	choice choice
	order  []string // UUIDs of GPUs that qualify, the best first
}

// Start implements Runner: it goes to the host, chooses, and copies what is missing (H6).
func (s *SSH) Start(ctx context.Context, j Job) (api.Handle, error) {
	b, _ := s.o.Config.ModelTraining.Backends.ByName(j.Backend)
	j.Step("connecting to " + b.Host)
	c, err := hosts.Dial(ctx, targetOf(b), s.o.Hosts)
	if err != nil {
		return api.Handle{}, err
	}
	h, err := s.start(ctx, c, b, j)
	if err != nil {
		return h, errors.Join(err, c.Close())
	}
	s.keep(j.RunID, c)
	return h, nil
}

func (s *SSH) start(ctx context.Context, c *hosts.Conn, b project.Backend, j Job) (api.Handle, error) {
	j.Say("Logged in as " + c.Login() + " (" + c.Transport() + ")")
	j.Step("looking at " + b.Host)
	f, err := s.probe(ctx, c, b, probeTime)
	if err == nil {
		err = s.ready(b, f)
	}
	if err != nil {
		return api.Handle{}, err
	}
	dir := f.Dir + "/jobs/" + string(j.RunID)
	h := api.Handle{Backend: j.Backend, Dir: dir, Host: b.Host, BootID: f.BootID}
	if err := j.Save(h); err != nil {
		return h, err
	}
	p, err := s.prepare(ctx, c, b, f, j)
	if err != nil {
		return h, err
	}
	if !f.HasCode {
		j.Step("copying Potato's code to " + b.Host)
	}
	if err := s.copyCode(ctx, c, b, f, p.remote); err != nil {
		return h, err
	}
	if err := s.makeVenv(ctx, c, b, f, &p.remote, j); err != nil {
		return h, err
	}
	plan, err := json.Marshal(s.plan(b, j, p, dir))
	if err != nil {
		return h, err
	}
	// The plan is what another agent needs to go on; there is no secret in it.
	a, err := c.Run(ctx, hosts.Script{
		Text:  "mkdir -p " + hosts.Quote(dir) + " && cd " + hosts.Quote(dir) + " && ln -sfn " + hosts.Quote(p.agent()) + " agent && cat >plan.json",
		Stdin: strings.NewReader(string(plan)), Env: s.env(b)})
	if err == nil && a.Code != 0 {
		err = scriptFailed(b.Host, "make the job directory", a)
	}
	return h, err
}

// ready says why no run can start on the host.
func (s *SSH) ready(b project.Backend, f hostFacts) error {
	r := &report{api.CheckReport{OK: true}}
	s.judgePlatform(r, f)
	if !r.OK {
		return api.Unavailablef("platform_unsupported", "%s", r.Items[0].Text).WithHint("%s", r.Items[0].Hint)
	}
	if err := f.pythonError(b); err != nil {
		return err
	}
	if f.Exec != nil && !*f.Exec {
		return WithHint(api.Unavailablef("host_noexec", "programs may not run from %s on %s (it is mounted noexec)", f.Dir, b.Host))
	}
	judgeDisk(r, b, f)
	for _, i := range r.Items {
		if i.Level == api.CheckFail {
			code := "start_failed"
			if strings.HasPrefix(i.Text, "only ") {
				code = "disk_full"
			}
			return api.Unavailablef(code, "%s", i.Text).WithHint("%s", i.Hint)
		}
	}
	return nil
}

// prepare decides what the run gets: a GPU of this host, or whatever the scheduler has that is asked here for a job.
func (s *SSH) prepare(ctx context.Context, c *hosts.Conn, b project.Backend, f hostFacts, j Job) (prepared, error) {
	if b.Type == api.BackendSlurm {
		there, err := s.askSlurm(ctx, c, b)
		if err != nil {
			return prepared{}, err
		}
		if e := there.missing(b.Host); e != nil {
			return prepared{}, e
		}
		j.Say("Python " + f.Said.Python + " (" + f.Python + ") on the login node " + f.Host + "; jobs run " + jobPython(b))
		return prepared{remote: s.remote(f)}, nil
	}
	p, err := s.choose(b, f)
	if err != nil {
		return p, err
	}
	for _, w := range p.choice.Warnings {
		j.warn(w)
	}
	j.Say("Python " + f.Said.Python + " (" + f.Python + ") and " + p.choice.text() + " on " + f.Host)
	return p, nil
}

func (s *SSH) remote(f hostFacts) remote {
	return remote{Dir: f.Dir, Code: f.Dir + "/code/" + s.codeHash(), Python: f.Python, Host: f.Host, BootID: f.BootID}
}

// choose decides what the run gets. The agent takes the first of the GPUs in order that nobody holds.
func (s *SSH) choose(b project.Backend, f hostFacts) (prepared, error) {
	p := prepared{remote: s.remote(f)}
	taken := map[string]bool{}
	for {
		got, err := chooseGPUs(b.Host, string(b.GPUs), b.MinFreeGPUMB, f.SMI, f.Torch, taken)
		if len(p.order) == 0 {
			p.choice = got
		}
		if err != nil && len(p.order) > 0 {
			return p, nil // no further one qualifies
		}
		if err != nil {
			return p, err
		}
		for _, g := range got.GPUs {
			p.order = append(p.order, g.UUID)
			taken[g.UUID] = true
		}
		if len(got.GPUs) != 1 || pins(b) {
			return p, nil
		}
	}
}

func pins(b project.Backend) bool { return b.GPUs != "" && b.GPUs != "auto" && b.GPUs != "none" }

// plan is what the agent is told, but for the token and the way home.
func (s *SSH) plan(b project.Backend, j Job, p prepared, dir string) agent.HostedJob {
	h := agent.HostedJob{
		Dir: dir, Backend: j.Backend, Python: p.Python, Worker: p.worker(), ArtifactURI: b.Host + ":" + dir + "/artifacts", Env: s.env(b),
		NumThreads: b.NumThreads, Device: "auto", GPUs: p.order, Pinned: pins(b), LossS: j.HeartbeatTimeoutS, Keep: b.KeepRemote,
	}
	if b.Type == api.BackendSlurm {
		h.Slurm = s.slurmConfig(b)
	}
	if s.o.Config.TrainersPath() != "" {
		h.TrainersDir = p.study()
	}
	return h
}

// Follow implements Runner: an agent works there until the end of the job was accepted. Whenever the session breaks, the
// agent goes on by itself for a while and another one, of a new session, takes up the job directory (H11).
func (s *SSH) Follow(ctx context.Context, j Job, h api.Handle) error {
	b, _ := s.o.Config.ModelTraining.Backends.ByName(j.Backend)
	c := s.kept(j.RunID)
	failures := 0
	for {
		select {
		case <-j.Ended: // the desk had it before the session broke
			return nil
		default:
		}
		began := time.Now()
		err := s.session(ctx, c, b, j, h)
		c = nil
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			return nil
		case api.HasCode(err, "server_restarted"):
			return err
		}
		if time.Since(began) > 10*time.Second {
			failures = 0
		}
		failures++
		if e := api.AsError(err); failures >= 5 && !api.HasCode(err, "ssh_unreachable") || e.Kind == api.KindInternal && failures >= 5 {
			return err
		}
		j.Say("The session with " + b.Host + " ended: " + api.AsError(err).Message + "; going there again")
		select {
		case <-time.After(min(time.Duration(failures)*500*time.Millisecond, 5*time.Second)):
		case <-j.Ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// session goes to the host and has an agent work there. c may be nil.
func (s *SSH) session(ctx context.Context, c *hosts.Conn, b project.Backend, j Job, h api.Handle) (err error) {
	if c == nil {
		j.Step("connecting to " + b.Host)
		if c, err = hosts.Dial(ctx, targetOf(b), s.o.Hosts); err != nil {
			return err
		}
	}
	if err := s.attend(ctx, c, b, j, h); err != nil {
		return errors.Join(err, c.Close())
	}
	s.keep(j.RunID, c) // for Fetch
	return nil
}

// attend starts an agent on the host and serves it until the end of the job was accepted.
func (s *SSH) attend(ctx context.Context, c *hosts.Conn, b project.Backend, j Job, h api.Handle) error {
	a, err := c.Run(ctx, hosts.Script{Text: "cat " + hosts.Quote(h.Dir+"/plan.json") + " && echo && mktemp -d /tmp/potato-XXXXXX", Env: s.env(b)})
	if err != nil {
		return err
	}
	var plan agent.HostedJob
	text, socketDir, _ := strings.Cut(string(a.Out), "\n")
	socketDir = strings.TrimSpace(socketDir)
	if json.Unmarshal([]byte(text), &plan) != nil || socketDir == "" {
		return WithHint(api.Unavailablef("server_restarted", "The agent on %s ended the run while this server was away", b.Host))
	}
	home, err := s.o.Home(j)
	if err != nil {
		return err
	}
	defer home.Release()
	plan.Token, plan.Socket, plan.LossS = home.Token, socketDir+"/s", j.HeartbeatTimeoutS
	defer func() {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_, _ = c.Run(limit, hosts.Script{Text: "rm -rf " + hosts.Quote(socketDir)}) // the agent removes it as well
	}()
	l, err := c.Listen(ctx, plan.Socket)
	if api.HasCode(err, "forward_refused") {
		j.Say(b.Host + " does not forward unix sockets, so the agent talks over its own standard input and output")
		return s.overStdio(ctx, c, b, j, home, plan)
	}
	if err != nil {
		return err
	}
	j.Step("waiting for the agent on " + b.Host)
	server := &http.Server{Handler: home.Handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(l)
	}()
	defer func() {
		_ = server.Close()
		<-served
	}()
	return s.runAgent(ctx, c, b, j, plan, hosts.Script{Stdin: jsonLine(plan), Stdout: &lineWriter{line: j.Say}})
}

// runAgent runs the agent and waits for the end of the job. Leaving lets it go on by itself.
func (s *SSH) runAgent(ctx context.Context, c *hosts.Conn, b project.Backend, j Job, plan agent.HostedJob, script hosts.Script) error {
	script.Text = "cd " + hosts.Quote(plan.Dir) + " && exec ./agent hosted"
	script.Env, script.Stays = s.env(b), true
	running, leave := context.WithCancel(ctx)
	defer leave()
	type end struct {
		answer hosts.Answer
		err    error
	}
	ended := make(chan end, 1)
	go func() {
		a, err := c.Run(running, script)
		ended <- end{a, err}
	}()
	select {
	case <-j.Ended:
		// It leaves by itself once it knows that its last word was heard.
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			leave()
			<-ended
		}
		return nil
	case <-ctx.Done():
		<-ended
		return ctx.Err()
	case e := <-ended:
		select {
		case <-j.Ended:
			return nil
		default:
		}
		if e.err != nil {
			return e.err
		}
		return scriptFailed(b.Host, "keep the agent running", e.answer)
	}
}

// overStdio serves the agent through its own standard input and output, as one connection for all calls.
func (s *SSH) overStdio(ctx context.Context, c *hosts.Conn, b project.Backend, j Job, home Home, plan agent.HostedJob) error {
	plan.Socket = ""
	toAgent, in := io.Pipe()
	out, fromAgent := io.Pipe()
	conn := &pipedConn{Reader: out, Writer: in, closed: make(chan struct{})}
	defer conn.Close() //nolint:errcheck // both ends are ours
	server := &http.Server{Handler: home.Handler, ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
	server.Protocols.SetUnencryptedHTTP2(true)
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(&oneConn{conn: conn})
	}()
	defer func() {
		_ = server.Close()
		_, _ = fromAgent.Close(), toAgent.Close()
		<-served
	}()
	return s.runAgent(ctx, c, b, j, plan, hosts.Script{
		Stdin: struct {
			io.Reader
			io.Closer
		}{io.MultiReader(jsonLine(plan), toAgent), toAgent},
		Stdout: fromAgent,
	})
}

// Stop implements Runner: through a session of its own, without the agent.
func (s *SSH) Stop(ctx context.Context, j Job, h api.Handle) error {
	if h.Dir == "" {
		return nil
	}
	b, _ := s.o.Config.ModelTraining.Backends.ByName(j.Backend)
	if c := s.kept(j.RunID); c != nil { // it was started and never followed
		_ = c.Close()
	}
	mayRun := api.Unavailablef("worker_may_run", "the worker may still run on %s", h.Host)
	c, err := hosts.Dial(ctx, targetOf(b), s.o.Hosts)
	if err != nil {
		return mayRun.WithCause(err)
	}
	defer c.Close() //nolint:errcheck // nothing is lost with it
	text := "cd " + hosts.Quote(h.Dir) + " 2>/dev/null || exit 0\n./agent stop"
	a, err := c.Run(ctx, hosts.Script{Text: text, Env: s.env(b), Stdin: jsonLine(map[string]any{"dir": h.Dir, "grace_s": j.GraceSeconds})})
	if err != nil || a.Code != 0 {
		return mayRun.WithCause(err)
	}
	return nil
}

func (s *SSH) keep(id api.RunID, c *hosts.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conns == nil {
		s.conns = map[api.RunID]*hosts.Conn{}
	}
	if old := s.conns[id]; old != nil {
		_ = old.Close()
	}
	s.conns[id] = c
}

// Close ends the sessions that were kept for a next step which did not come.
func (s *SSH) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for id, c := range s.conns {
		err = errors.Join(err, c.Close())
		delete(s.conns, id)
	}
	return err
}

// kept is the session that Start has opened, once.
func (s *SSH) kept(id api.RunID) *hosts.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conns[id]
	delete(s.conns, id)
	return c
}

// warn is a warning of the run, where it can have any.
func (j Job) warn(text string) {
	j.Say(text)
	if j.Warn != nil {
		j.Warn(text)
	}
}

// pipedConn is two pipes as a connection.
type pipedConn struct {
	io.Reader
	io.Writer
	closed chan struct{}
}

func (c *pipedConn) Close() error {
	select {
	case <-c.closed:
		return nil
	default:
		close(c.closed)
	}
	_ = c.Reader.(*io.PipeReader).Close()
	return c.Writer.(*io.PipeWriter).Close()
}

func (c *pipedConn) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "stdio", Net: "unix"} }
func (c *pipedConn) RemoteAddr() net.Addr             { return &net.UnixAddr{Name: "stdio", Net: "unix"} }
func (c *pipedConn) SetDeadline(time.Time) error      { return nil }
func (c *pipedConn) SetReadDeadline(time.Time) error  { return nil }
func (c *pipedConn) SetWriteDeadline(time.Time) error { return nil }

// oneConn is a listener that has one connection to give.
type oneConn struct {
	conn  *pipedConn
	given bool
}

func (l *oneConn) Accept() (net.Conn, error) {
	if !l.given {
		l.given = true
		return l.conn, nil
	}
	<-l.conn.closed
	return nil, net.ErrClosed
}

func (l *oneConn) Close() error   { return l.conn.Close() }
func (l *oneConn) Addr() net.Addr { return l.conn.LocalAddr() }
