package ovsdb_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

// stalling is a server of one connection, by hand: like ovsdb-server it reads
// nothing while it has something to send.
type stalling struct {
	t       *testing.T
	conn    net.Conn
	reader  *bufio.Reader
	decoder *json.Decoder
}

type stallingRequest struct {
	ID     json.RawMessage
	Method string
}

func (s *stalling) next() (r stallingRequest) {
	if err := s.decoder.Decode(&r); err != nil {
		s.t.Errorf("read: %v", err)
	}
	return r
}

func (s *stalling) send(format string, args ...any) {
	if _, err := fmt.Fprintf(s.conn, format, args...); err != nil {
		s.t.Errorf("write: %v", err)
	}
}

// open answers what a session asks first, and waits until its next request begins
// to arrive.
func (s *stalling) open() {
	s.send(`{"id":%s,"result":null,"error":{"error":"unknown database"}}`, s.next().ID)
	s.send(`{"id":%s,"result":%s,"error":null}`, s.next().ID, schema.Southbound)
	s.send(`{"id":%s,"result":[false,"0a1b2c3d-0000-4000-8000-000000000001",{}],"error":null}`, s.next().ID)
	if _, err := s.reader.Peek(1); err != nil {
		s.t.Errorf("read: %v", err)
	}
}

// stall runs a session on a stalling server that does so while a request arrives
// that is larger than a socket takes.
func stall(t *testing.T, then func(*stalling)) (*ovsdb.Session, *recorder) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		c, err := listener.Accept()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(ovsdbtest.Timeout)); err != nil {
			t.Error(err)
		}
		reader := bufio.NewReader(c)
		s := &stalling{t: t, conn: c, reader: reader, decoder: json.NewDecoder(reader)}
		s.open()
		then(s)
		_, _ = c.Read(make([]byte, 1)) // until the session ends
	}()
	t.Cleanup(func() { _ = listener.Close(); <-served })
	s, r := run(t, sbConfig("unix:"+listener.Addr().String()))
	r.waitSync()
	var clauses []ovsdb.Clause
	for n := range 4000 {
		clauses = append(clauses, ovsdb.Equal("name", fmt.Sprintf("%s-%d", strings.Repeat("n", 200), n)))
	}
	if err := s.SetConditions(ovsdb.Conditions{sb.ChassisTable: clauses}); err != nil {
		t.Fatal(err)
	}
	return s, r
}

// TestLargeBothWays: a large request and a large update at once, with an echo
// request before it: both sides wait for the other to read, unless this one reads
// whatever it has to write.
func TestLargeBothWays(t *testing.T) {
	s, r := stall(t, func(s *stalling) {
		s.send(`{"id":"echo","method":"echo","params":[]}`)
		s.send(`{"id":null,"method":"update3","params":["data","0a1b2c3d-0000-4000-8000-000000000002",`+
			`{"Chassis":{"0a1b2c3d-0000-4000-8000-0000000000aa":{"insert":{"name":"a","hostname":%q}}}}]}`, strings.Repeat("x", 2<<20))
		for range 2 {
			if r := s.next(); r.Method == "monitor_cond_change" {
				s.send(`{"id":%s,"result":{},"error":null}`, r.ID)
			}
		}
	})
	waitAnswered(r, s)
	r.waitChassis("a")
	if st := s.Status(); st.Connects != 1 {
		t.Errorf("status %+v", st)
	}
}

// TestTransactDeadline: a transaction's deadline counts while the server does not
// read, too.
func TestTransactDeadline(t *testing.T) {
	arriving, release := make(chan struct{}), make(chan struct{})
	s, _ := stall(t, func(*stalling) { close(arriving); <-release })
	defer close(release)
	<-arriving
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Transact(ctx, ovsdb.Comment("x")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// TestConditionRefused: a server that refuses conditions costs the connection, as
// long as it does; the rows stay, and then they are those of the conditions.
func TestConditionRefused(t *testing.T) {
	server := startSB(t)
	var refuse atomic.Bool
	proxy := newLiar(t, server.Endpoint(), func(m json.RawMessage) []byte {
		var r stallingRequest
		if err := json.Unmarshal(m, &r); err != nil {
			t.Errorf("client's message: %v", err)
		}
		if !refuse.Load() || !bytes.Contains(m, []byte(`"wanted"`)) {
			return nil
		}
		return fmt.Appendf(nil, `{"id":%s,"result":null,"error":{"error":"syntax error","details":"x"}}`, r.ID)
	}, nil)
	writer, w := run(t, sbConfig(server.Endpoint()))
	w.waitSync()
	addChassis(t, writer, "other", "192.0.2.1")
	addChassis(t, writer, "wanted", "2001:db8::1")
	config := sbConfig(proxy.Endpoint())
	config.Conditions = ovsdb.Conditions{sb.ChassisTable: {ovsdb.Equal("name", "other")}}
	s, r := run(t, config)
	r.waitSync()
	refuse.Store(true)
	if err := s.SetConditions(ovsdb.Conditions{sb.ChassisTable: {ovsdb.Equal("name", "wanted")}}); err != nil {
		t.Fatal(err)
	}
	waitStatus(t, s, "the refusal", func(st ovsdb.Status) bool {
		return !st.Connected && st.LastError != nil && strings.Contains(st.LastError.Error(), "monitor_cond_since: syntax error")
	})
	if got := r.chassisNames(); !slices.Equal(got, []string{"other"}) {
		t.Errorf("rows after the refusal: %v", got)
	}
	refuse.Store(false)
	r.waitChassis("wanted")
	waitAnswered(r, s)
}

// TestUnusableIsSaidOnce: each server that cannot be used is told of once, not
// with every attempt, however many there are.
func TestUnusableIsSaidOnce(t *testing.T) {
	resetting, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Fatal(err)
	}
	var attempts atomic.Int32
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := resetting.Accept()
			if err != nil {
				return
			}
			attempts.Add(1)
			// An error that names the client's port.
			_, _ = c.Read(make([]byte, 1<<10))
			if err := c.(*net.TCPConn).SetLinger(0); err != nil {
				t.Error(err)
			}
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = resetting.Close(); <-done })
	var said counter
	config := sbConfig("unix:/nonexistent/a,unix:/nonexistent/b,tcp:" + resetting.Addr().String())
	config.Logger = slog.New(slog.NewTextHandler(&said, nil))
	config.BackoffMax = 20 * time.Millisecond
	run(t, config)
	waitFor(t, "20 rounds", func() bool { return attempts.Load() >= 20 })
	if n := said.lines.Load(); n > 6 {
		t.Errorf("%d lines in %d rounds through 3 servers", n, attempts.Load())
	}
}

// counter counts lines.
type counter struct{ lines atomic.Int32 }

func (c *counter) Write(p []byte) (int, error) {
	c.lines.Add(int32(bytes.Count(p, []byte("\n"))))
	return len(p), nil
}

func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(ovsdbtest.Timeout)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
