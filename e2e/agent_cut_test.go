package e2e_test

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// cutter is a proxy in front of the server that breaks transfers to the agent off: so many connections of more than limit
// bytes each, the first by a reset, which takes what is on its way with it, the next by an end, and so on. What is shorter
// passes.
type cutter struct {
	address string
	limit   int64
	between func() // happens at each cut, before the agent can know of it; may be nil

	mu     sync.Mutex
	cuts   int   // still to be made
	made   int   // were made
	passed int64 // bytes of all transfers that were longer than a message
}

// cutting starts one until the test ends.
func cutting(t *testing.T, s *server, cuts int, limit int64) *cutter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cutter{address: "http://" + l.Addr().String(), limit: limit, cuts: cuts}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			agent, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { c.join(agent.(*net.TCPConn), strings.TrimPrefix(s.URL, "http://")) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return c
}

// join carries one connection until either side is done with it, or it is cut.
func (c *cutter) join(agent *net.TCPConn, server string) {
	defer agent.Close()
	conn, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer conn.Close()
	var up sync.WaitGroup
	up.Go(func() {
		_, _ = io.Copy(conn, agent) // ends when the agent closes, or we do
		_ = conn.(*net.TCPConn).CloseWrite()
	})
	n, err := io.CopyN(agent, conn, c.limit)
	if err == nil {
		cut := c.cut()
		if cut > 0 && c.between != nil {
			c.between()
		}
		switch {
		case cut == 0:
			more, _ := io.Copy(agent, conn)
			n += more
		case cut%2 == 1:
			_ = agent.SetLinger(0) // a reset, as of a router that forgets
		}
	}
	if n >= c.limit {
		c.mu.Lock()
		c.passed += n
		c.mu.Unlock()
	}
	_, _ = agent.Close(), conn.Close()
	up.Wait()
}

// cut says which cut this is, from 1, or 0 when all were made.
func (c *cutter) cut() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cuts == 0 {
		return 0
	}
	c.cuts--
	c.made++
	return c.made
}

func (c *cutter) counts() (made int, passed int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made, c.passed
}

// bundleMB is about the size of the bundle that is cut: 200 MB with `make test-all`.
func bundleMB() int64 {
	if os.Getenv("POTATO_TEST_ALL") != "" {
		return 200
	}
	return 20
}

// cutStudy is a study with a bundle of that size, its server and a token.
func cutStudy(t *testing.T) (*server, string) {
	t.Helper()
	dir := agentStudy(t)
	const text = 64 << 10
	moreItems(t, dir, int(bundleMB()<<20/text*4/3), text)
	token := register(t, filepath.Join(dir, "config.yaml"))
	return start(t, dir), token
}

// bundleSize is the real one of a run whose agent is downloading.
func (s *server) bundleSize(id string) int64 {
	s.t.Helper()
	s.wait(id, "running", func(r run) bool { return r.Status == "running" })
	st, err := os.Stat(filepath.Join(s.dir, "annotation_output", "training", "runs", id, "bundle.tar.gz"))
	if err != nil {
		s.t.Fatal(err)
	}
	if st.Size() < bundleMB()<<20 {
		s.t.Errorf("the bundle has only %d MB", st.Size()>>20)
	}
	return st.Size()
}

// G3, T43: a bundle that is cut three times on its way arrives, and what had come is not asked for again.
func TestBundleIsCutThreeTimes(t *testing.T) {
	t.Parallel()
	s, token := cutStudy(t)
	limit := bundleMB() << 20 / 5
	c := cutting(t, s, 3, limit)
	id := s.agentTextRun(0)
	a := agentHere(t, c.address, token, t.TempDir(), "--once")
	size := s.bundleSize(id)
	s.finished(id, "success")
	a.leaves(0)
	made, passed := c.counts()
	if made != 3 {
		t.Errorf("%d cuts were made", made)
	}
	// The two resets may cost all that came by their connections; the end costs nothing.
	if most := size + 2*limit + 1<<20; passed < size || passed > most {
		t.Errorf("%d bytes were carried for a bundle of %d, %d at the most", passed, size, most)
	}
	if !strings.Contains(a.said(), "the run is done") {
		t.Errorf("the agent said:\n%s", a.said())
	}
}

// G3: cut five times the download has failed, and the run says so, how far it was and what may be the matter.
func TestBundleIsCutFiveTimes(t *testing.T) {
	t.Parallel()
	s, token := cutStudy(t)
	c := cutting(t, s, 5, bundleMB()<<20/20)
	id := s.agentTextRun(0)
	workdir := t.TempDir()
	a := agentHere(t, c.address, token, workdir, "--once")
	r := s.finished(id, "error")
	a.leaves(0)
	if made, _ := c.counts(); made != 5 {
		t.Errorf("%d cuts were made", made)
	}
	if r.ErrorCode != "bundle_download_failed" || !strings.Contains(r.Error, "could not be downloaded in 5 attempts: the connection was cut after ") ||
		!strings.Contains(r.Hint, "a proxy may cut long downloads") {
		t.Errorf("%s, hint %q", describe(r), r.Hint)
	}
	if left, _ := os.ReadDir(filepath.Join(workdir, "jobs")); len(left) > 0 {
		t.Errorf("%v is left of the download", left)
	}
}
