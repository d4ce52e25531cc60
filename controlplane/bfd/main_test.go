package bfd

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// Speakers of the tests live in network namespaces of their own: each is a process,
// the test binary itself, that answers a line with its status and ends with stdin.
const childEnv = "SLUICE_BFD_TEST_PEERS"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(runChild())
	}
	goleak.VerifyTestMain(m)
}

// childReport is a status, and every change of a path so far, in order.
type childReport struct {
	Status
	Changes []string
}

func runChild() int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	var peers []Peer
	if err := json.Unmarshal([]byte(os.Getenv(childEnv)), &peers); err != nil {
		return fail(err)
	}
	var mu sync.Mutex
	var changes []string
	s, err := New(Config{Peers: peers, Changed: func(a netip.Addr, p Path) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, a.String()+" "+p.String())
	}}, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	if err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	enc := json.NewEncoder(os.Stdout)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		r := childReport{Status: s.Status()} // Changed is called with a session's lock held
		mu.Lock()
		r.Changes = slices.Clone(changes)
		mu.Unlock()
		_ = enc.Encode(r)
	}
	s.TellEnd()
	cancel()
	if err := <-ended; err != nil {
		return fail(err)
	}
	if err := goleak.Find(); err != nil {
		return fail(err)
	}
	return 0
}

// child is the test's side of a speaker process.
type child struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func startChild(t testing.TB, ns string, peers ...Peer) *child {
	t.Helper()
	raw, err := json.Marshal(peers)
	if err != nil {
		t.Fatal(err)
	}
	c := &child{t: t, cmd: commandIn(ns, os.Args[0])}
	c.cmd.Env = append(os.Environ(), childEnv+"="+string(raw))
	c.cmd.Stderr = t.Output()
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = json.NewDecoder(out)
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
	})
	return c
}

func (c *child) report() childReport {
	c.t.Helper()
	var r childReport
	if _, err := fmt.Fprintln(c.in); err != nil {
		c.t.Fatal(err)
	}
	if err := c.out.Decode(&r); err != nil {
		c.t.Fatalf("the speaker does not answer: %v", err)
	}
	return r
}

// all tells whether every session has the path.
func (c *child) all(p Path) bool {
	c.t.Helper()
	for _, s := range c.report().Sessions {
		if s.Path != p {
			return false
		}
	}
	return true
}

// stop ends the speaker as a signal does, and wants no goroutine left.
func (c *child) stop() {
	c.t.Helper()
	_ = c.in.Close()
	if err := c.cmd.Wait(); err != nil {
		c.t.Errorf("the speaker ended with %v", err)
	}
}

// eventually waits for a state; the deadline is only for a broken build.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
