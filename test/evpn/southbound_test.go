package evpn_test

import (
	"io"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
)

// southbound is the only way to a cloud's Southbound database: an address of a node.
type southbound struct {
	w      *world
	node   string
	at     netip.AddrPort
	socket string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]struct{}
}

// onlyThrough has the chassis of a cloud reach their Southbound database by an address
// of a node alone.
func (w *world) onlyThrough(node, cloud string, chassis ...string) *southbound {
	w.Helper()
	socket, err := w.Endpoints(cloud, "sb")
	if err != nil {
		w.Fatal(err)
	}
	s := &southbound{w: w, node: node, at: netip.AddrPortFrom(w.node(node).VTEP6, 6642+uint16(cloud[0])), socket: strings.TrimPrefix(socket, "unix:")}
	s.connect()
	w.Cleanup(s.cut)
	for _, c := range chassis {
		w.exec(c, "ovs-vsctl", "set", "Open_vSwitch", ".", `external_ids:ovn-remote="tcp:[`+s.at.Addr().String()+"]:"+strconv.Itoa(int(s.at.Port()))+`"`)
	}
	return s
}

// connect lets the chassis connect.
func (s *southbound) connect() {
	s.w.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = map[net.Conn]struct{}{}
	s.w.in(s.node, func() (err error) {
		s.listener, err = net.Listen("tcp", s.at.String())
		return err
	})
	go s.serve(s.listener)
}

func (s *southbound) serve(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		database, err := net.Dial("unix", s.socket)
		if err != nil || !s.keep(l, c, database) {
			_ = c.Close()
			continue
		}
		go func() { _, _ = io.Copy(database, c); _ = database.Close() }()
		go func() { _, _ = io.Copy(c, database); _ = c.Close() }()
	}
}

func (s *southbound) keep(l net.Listener, both ...net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range both {
		if s.listener != l {
			_ = c.Close()
			continue
		}
		s.open[c] = struct{}{}
	}
	return s.listener == l
}

// cut ends all connections, and lets nobody connect.
func (s *southbound) cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return
	}
	_ = s.listener.Close()
	s.listener = nil
	for c := range s.open {
		_ = c.Close()
	}
}

// cannotReach asserts that a node has no way there.
func (s *southbound) cannotReach(node string) {
	s.w.Helper()
	if out, err := s.w.Exec(s.w.Context(), node, "ip", "route", "get", s.at.Addr().String()); err == nil {
		s.w.Errorf("%s has a way to the Southbound database without Sluice:\n%s", node, out)
	}
}
