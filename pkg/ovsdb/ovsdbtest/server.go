package ovsdbtest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Timeout bounds every wait of this package.
const Timeout = 30 * time.Second

// Options says what to run.
type Options struct {
	// Schema of the database, JSON.
	Schema []byte
	// TCP is a loopback address to listen on besides the unix socket, such as
	// 127.0.0.1 or ::1; empty for none.
	TCP string
	// SSL: listen with TLS on this loopback address; needs PKI.
	SSL string
	PKI *PKI
	// RelayOf makes it a relay of the endpoints (comma-separated).
	RelayOf string
	// SyncFrom makes it a standby of that endpoint, as in ovsdb-server's active-backup
	// replication: read-only, and behind it.
	SyncFrom string
	// Remotes are further --remote options, such as
	// "db:OVN_Southbound,SB_Global,connections".
	Remotes []string
}

// Server is one ovsdb-server process with its database.
type Server struct {
	t       testing.TB
	options Options
	dir     string
	name    string // of the database
	listen  []string
	tcp     string
	ssl     string
	raft    string
	process *exec.Cmd
	exited  chan struct{}
	logs    atomic.Int32
	// editing: it listens on a socket of its own only.
	editing bool
}

// Start creates the database and runs its server until the test ends.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	s := newServer(t, options)
	if options.RelayOf == "" {
		s.tool("create", s.file(), s.schemaFile())
	}
	s.Run()
	return s
}

func newServer(t testing.TB, options Options) *Server {
	t.Helper()
	s := &Server{t: t, options: options, name: schemaName(t, options.Schema)}
	// Not t.TempDir: a unix socket's path has at most 107 bytes.
	dir, err := os.MkdirTemp("", "ovsdb")
	if err != nil {
		t.Fatalf("temporary directory: %v", err)
	}
	s.dir = dir
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			s.showLogs()
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove %s: %v", dir, err)
		}
	})
	s.write("schema", options.Schema)
	s.listen = []string{"punix:" + s.socket()}
	if options.TCP != "" {
		s.tcp = freeAddress(t, options.TCP)
		s.listen = append(s.listen, passive("ptcp", s.tcp))
	}
	if options.SSL != "" {
		s.ssl = freeAddress(t, options.SSL)
		s.listen = append(s.listen, passive("pssl", s.ssl))
	}
	s.listen = append(s.listen, options.Remotes...)
	return s
}

func schemaName(t testing.TB, raw []byte) string {
	t.Helper()
	var schema struct{ Name string }
	if err := json.Unmarshal(raw, &schema); err != nil || schema.Name == "" {
		t.Fatalf("schema without a name: %v", err)
	}
	return schema.Name
}

// freeAddress finds a loopback port that nothing listens on.
func freeAddress(t testing.TB, host string) string {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatalf("loopback port: %v", err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatalf("loopback port: %v", err)
	}
	return address
}

// FreeAddress is a loopback address "host:port" that nothing listens on.
func FreeAddress(t testing.TB, host string) string { return freeAddress(t, host) }

// passive writes an OVSDB passive connection, scheme:port:host.
func passive(scheme, address string) string {
	host, port, _ := net.SplitHostPort(address)
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return scheme + ":" + port + ":" + host
}

// Passive writes the address as an ovsdb-server Connection target.
func Passive(scheme, address string) string { return passive(scheme, address) }

// Endpoint is the unix socket, as a client's endpoint.
func (s *Server) Endpoint() string { return "unix:" + s.socket() }

// TCPEndpoint is the TCP listener.
func (s *Server) TCPEndpoint() string { return "tcp:" + s.tcp }

// SSLEndpoint is the TLS listener.
func (s *Server) SSLEndpoint() string { return "ssl:" + s.ssl }

func (s *Server) socket() string { return filepath.Join(s.dir, "db.sock") }

// current is the socket that the process listens on now.
func (s *Server) current() string {
	if s.editing {
		return filepath.Join(s.dir, "edit.sock")
	}
	return s.socket()
}

func (s *Server) control() string    { return filepath.Join(s.dir, "ctl") }
func (s *Server) file() string       { return filepath.Join(s.dir, "db") }
func (s *Server) schemaFile() string { return filepath.Join(s.dir, "schema") }

func (s *Server) write(name string, content []byte) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), content, 0o600); err != nil {
		s.t.Fatalf("write %s: %v", name, err)
	}
}

func (s *Server) tool(args ...string) {
	s.t.Helper()
	if out, err := exec.Command("ovsdb-tool", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("ovsdb-tool %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

// Run starts the process, again after Stop or Kill, and waits until it listens.
func (s *Server) Run() {
	s.t.Helper()
	args := []string{
		"--no-chdir", "--unixctl=" + s.control(), "-vconsole:off", "-vsyslog:off", "-vfile:info",
		"--log-file=" + filepath.Join(s.dir, fmt.Sprintf("log.%d", s.logs.Add(1))),
	}
	remotes := s.listen
	if s.editing {
		remotes = []string{"punix:" + s.current()}
	}
	for _, remote := range remotes {
		args = append(args, "--remote="+remote)
	}
	if p := s.options.PKI; p != nil {
		files := p.Files(s.t, "ovsdb-server")
		args = append(args, "--private-key="+files.Key, "--certificate="+files.Cert, "--ca-cert="+files.CA)
	}
	if s.options.SyncFrom != "" {
		args = append(args, "--sync-from="+s.options.SyncFrom)
	}
	if s.options.RelayOf != "" {
		args = append(args, "relay:"+s.name+":"+s.options.RelayOf)
	} else {
		args = append(args, s.file())
	}
	cmd := exec.Command("ovsdb-server", args...)
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("start ovsdb-server: %v", err)
	}
	exited := make(chan struct{})
	s.process, s.exited = cmd, exited
	go func() {
		_ = cmd.Wait() // how it ended shows in its log
		close(exited)
	}()
	s.waitListening()
}

// waitListening waits for the database's socket and the control socket.
func (s *Server) waitListening() {
	s.t.Helper()
	deadline := time.Now().Add(Timeout)
	for _, socket := range []string{s.current(), s.control()} {
		for !answers(socket) {
			select {
			case <-s.exited:
				s.showLogs()
				s.t.Fatal("ovsdb-server ended")
			case <-time.After(5 * time.Millisecond):
			}
			if time.Now().After(deadline) {
				s.showLogs()
				s.t.Fatalf("ovsdb-server does not listen on %s", socket)
			}
		}
	}
}

func answers(socket string) bool {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// Stop ends the process with SIGTERM. It is no error if it does not run.
func (s *Server) Stop() { s.end(syscall.SIGTERM) }

// Kill ends the process with SIGKILL.
func (s *Server) Kill() { s.end(syscall.SIGKILL) }

// Freeze stops the process without ending its connections (SIGSTOP); Thaw
// continues it.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw continues a frozen process.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.process.Process.Signal(sig); err != nil {
		s.t.Fatalf("signal ovsdb-server: %v", err)
	}
}

func (s *Server) end(sig syscall.Signal) {
	if s.process == nil {
		return
	}
	// A process that has ended already refuses the signal, which is fine.
	_ = s.process.Process.Signal(syscall.SIGCONT)
	_ = s.process.Process.Signal(sig)
	select {
	case <-s.exited:
	case <-time.After(Timeout):
		s.t.Errorf("ovsdb-server %d does not end; killing it", s.process.Process.Pid)
		_ = s.process.Process.Kill()
		<-s.exited
	}
	s.process = nil
	// A socket left behind by SIGKILL would look as if it listened.
	_ = os.Remove(s.current())
	_ = os.Remove(s.control())
}

// ReplaceDatabase makes the database new and empty; the server must be stopped.
func (s *Server) ReplaceDatabase() {
	s.t.Helper()
	if err := os.Remove(s.file()); err != nil {
		s.t.Fatalf("remove database: %v", err)
	}
	_ = os.Remove(filepath.Join(s.dir, ".db.~lock~"))
	s.tool("create", s.file(), s.schemaFile())
}

// Backup keeps a copy of the database as it is on the disk; the function that it returns puts
// that back in its place. The server must be stopped for both.
func (s *Server) Backup() (restore func()) {
	s.t.Helper()
	kept, err := os.ReadFile(s.file())
	if err != nil {
		s.t.Fatalf("read database: %v", err)
	}
	return func() {
		s.t.Helper()
		if err := os.WriteFile(s.file(), kept, 0o600); err != nil {
			s.t.Fatalf("restore database: %v", err)
		}
	}
}

// Appctl runs an ovs-appctl command of the server and returns what it says.
func (s *Server) Appctl(args ...string) string {
	s.t.Helper()
	out, err := exec.Command("ovs-appctl", append([]string{"-t", s.control()}, args...)...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("ovs-appctl %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// Edit runs the stopped server on a socket that its clients do not know, for
// Transact to change the database while they are away. Publish ends that.
func (s *Server) Edit() {
	s.t.Helper()
	s.editing = true
	s.Run()
}

// Publish makes an edited database available to its clients.
func (s *Server) Publish() {
	s.t.Helper()
	s.Stop()
	s.editing = false
	s.Run()
}

// Transact runs one transaction, operations as JSON (RFC 7047 section 5.2), on a connection of its
// own, and returns the results. It fails the test if an operation fails.
func (s *Server) Transact(operations ...string) string {
	s.t.Helper()
	body := fmt.Sprintf("[%q,%s]", s.name, strings.Join(operations, ","))
	conn, err := net.Dial("unix", s.current())
	if err != nil {
		s.t.Fatalf("transact %s: %v", body, err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(Timeout)); err != nil {
		s.t.Fatalf("transact %s: %v", body, err)
	}
	var reply struct{ Result, Error json.RawMessage }
	_, err = fmt.Fprintf(conn, `{"id":0,"method":"transact","params":%s}`, body)
	if err == nil {
		err = json.NewDecoder(conn).Decode(&reply)
	}
	if err != nil || string(reply.Error) != "null" || strings.Contains(string(reply.Result), `"error":`) {
		s.t.Fatalf("transact %s: %v: %s%s", body, err, reply.Result, reply.Error)
	}
	return string(reply.Result)
}

// Convert changes the schema while the server runs, as an upgrade of OVN does.
func (s *Server) Convert(schema []byte) {
	s.t.Helper()
	s.write("schema", schema)
	if out, err := exec.Command("ovsdb-client", "convert", "unix:"+s.current(), s.schemaFile()).CombinedOutput(); err != nil {
		s.t.Fatalf("ovsdb-client convert: %v: %s", err, out)
	}
}

func (s *Server) showLogs() {
	files, _ := filepath.Glob(filepath.Join(s.dir, "log.*"))
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if len(raw) > 4000 {
			raw = raw[len(raw)-4000:]
		}
		s.t.Logf("%s:\n%s", file, raw)
	}
}
