package metadataproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// supervisor is what systemd is to the process: it keeps descriptors, and hands them to
// the next one (sd_notify(3), sd_listen_fds(3)).
type supervisor struct {
	t    *testing.T
	path string

	mu     sync.Mutex
	stored map[string]*os.File
	said   []string
}

func newSupervisor(t *testing.T) *supervisor {
	t.Helper()
	s := &supervisor{t: t, path: filepath.Join(t.TempDir(), "notify"), stored: map[string]*os.File{}}
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); s.run(c) }()
	t.Cleanup(func() {
		_ = c.Close()
		<-done
		for _, f := range s.stored {
			_ = f.Close()
		}
	})
	return s
}

func (s *supervisor) run(c *net.UnixConn) {
	text, rights := make([]byte, 4096), make([]byte, 512)
	for {
		n, r, _, _, err := c.ReadMsgUnix(text, rights)
		if err != nil {
			return
		}
		var fds []int
		if messages, err := unix.ParseSocketControlMessage(rights[:r]); err == nil && len(messages) == 1 {
			fds, _ = unix.ParseUnixRights(&messages[0])
		}
		s.take(string(text[:n]), fds)
	}
}

func (s *supervisor) take(text string, fds []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	words := strings.Split(text, "\n")
	s.said = append(s.said, words...)
	name := ""
	for _, w := range words {
		if n, ok := strings.CutPrefix(w, "FDNAME="); ok {
			name = n
		}
	}
	switch {
	case slices.Contains(words, "FDSTORE=1") && len(fds) == 1:
		f := os.NewFile(uintptr(fds[0]), name)
		if s.stored[name] != nil { // systemd compares the two by kcmp(2)
			_ = f.Close()
			return
		}
		s.stored[name] = f
	case slices.Contains(words, "FDSTOREREMOVE=1"):
		if f := s.stored[name]; f != nil {
			_ = f.Close()
			delete(s.stored, name)
		}
	}
}

func (s *supervisor) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for name := range s.stored {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

func (s *supervisor) heard(word string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.said, word)
}

// supervise has a process started as systemd would.
func (s *supervisor) supervise(c *exec.Cmd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.Env = append(os.Environ(), "NOTIFY_SOCKET="+s.path)
	var names []string
	for name, f := range s.stored {
		names = append(names, name)
		c.ExtraFiles = append(c.ExtraFiles, f)
	}
	if len(names) > 0 {
		c.Env = append(c.Env, fmt.Sprintf("LISTEN_FDS=%d", len(names)), "LISTEN_FDNAMES="+strings.Join(names, ":"))
	}
	c.Args = append([]string{"sh", "-c", `LISTEN_PID=$$ exec "$@"`, "sh"}, c.Args...)
	var err error
	if c.Path, err = exec.LookPath("sh"); err != nil {
		s.t.Fatal(err)
	}
}

// Ended by SIGTERM and by SIGKILL, with somebody who keeps its sockets: whoever asks
// meanwhile waits for the next process, and is answered.
func TestSocketsAreKept(t *testing.T) {
	w := newWorld(t)
	s := newSupervisor(t)
	p := w.start(s.supervise)
	if got := s.names(); !slices.Equal(got, []string{"steered4", "steered6"}) || !s.heard("READY=1") {
		t.Fatalf("stored: %v", got)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGTERM} {
		err := p.end(sig)
		if (err == nil) != (sig == syscall.SIGTERM) {
			t.Errorf("%v: it ended with %v", sig, err)
		}
		answers := make(chan string, 20)
		for i := range cap(answers) {
			from := atRed
			if i%2 == 1 {
				from = atBlue6
			}
			go func() { answers <- w.ask(w.guest(from), "GET", "/openstack", nil, nil) }()
		}
		time.Sleep(500 * time.Millisecond)
		if len(answers) > 0 {
			t.Errorf("%v: somebody has answered: %s", sig, <-answers)
		}
		p = w.start(s.supervise)
		for range cap(answers) {
			if got := <-answers; !strings.HasPrefix(got, "200 inst-") {
				t.Errorf("%v: %s", sig, got)
			}
		}
		if got := s.names(); !slices.Equal(got, []string{"steered4", "steered6"}) {
			t.Errorf("%v: stored: %v", sig, got)
		}
	}
	// It hands over by itself, too, and the supervisor's copies are the same sockets.
	p.again(syscall.SIGHUP)
	if got := w.ask(w.guest(atRed), "GET", "/", nil, nil); !strings.HasPrefix(got, "200 inst-red") {
		t.Error(got)
	}
	if !s.heard("STOPPING=1") {
		t.Error("the supervisor was not told of the end")
	}
}

// Restarted by SIGTERM again and again under load, no connection is refused, and no
// request that has begun is broken off.
func TestRestartsUnderLoad(t *testing.T) {
	w := newWorld(t)
	s := newSupervisor(t)
	p := w.start(s.supervise)
	l := &load{}
	for range 6 {
		l.group.Go(func() {
			for !l.stop.Load() {
				// Connections are closed by the guest after each request: one that waits
				// for the next is closed by a process that ends.
				if err := l.converse(w, atRed, "inst-red red 10.0.0.5 0", 1); err != nil {
					l.errors.Add(1)
					l.first.CompareAndSwap(nil, err.Error())
				}
			}
		})
	}
	for range 5 {
		time.Sleep(300 * time.Millisecond)
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Errorf("it ended with %v", err)
		}
		p = w.start(s.supervise)
	}
	asked, failed, first := l.end()
	t.Logf("%d requests, 5 restarts, %d failed: %v", asked, failed, first)
	if failed > 0 || asked < 50 {
		t.Errorf("%d requests, %d failed: %v", asked, failed, first)
	}
}

// A request that is under way when it is asked to end is answered.
func TestRequestUnderWayIsAnswered(t *testing.T) {
	w := newWorld(t)
	begun := make(chan struct{}, 1)
	slow := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		time.Sleep(time.Second)
		fmt.Fprint(rw, "late")
	})
	w.nova.handler.Store(&slow)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		p := w.start(nil)
		c := w.steered(atRed)
		fmt.Fprint(c, "GET /openstack HTTP/1.1\r\nHost: a\r\n\r\n")
		<-begun
		anew := p.signal(sig)
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("%v: %v", sig, err)
		}
		text, err := io.ReadAll(a.Body)
		_ = a.Body.Close()
		if err != nil || string(text) != "late" {
			t.Errorf("%v: %q %v", sig, text, err)
		}
		if sig == syscall.SIGHUP {
			anew()
		}
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Errorf("%v: it ended with %v", sig, err)
		}
	}
}
