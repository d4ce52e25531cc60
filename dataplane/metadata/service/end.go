package service

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// closeListeners ends the taking of connections. The sockets go on listening where others
// have them.
func (s *Service) closeListeners() {
	for _, l := range s.open {
		_ = l.inner.Close()
	}
	s.serving.Wait()
}

// openingTime is how long a connection that a guest has begun to open may take to be open.
const openingTime = 100 * time.Millisecond

// openNoMore has the listeners take the connections that are being opened, and no others: a
// socket that is closed resets those that it has and nobody has taken, while a packet that
// opens one is sent again if it is dropped.
func (s *Service) openNoMore() {
	any := false
	for _, l := range s.open {
		if err := withFD(l.inner, dropSYN); err != nil {
			s.cfg.Log.Warn("connections that are being opened may be reset", "error", err)
			continue
		}
		any = true
	}
	if any {
		time.Sleep(openingTime)
	}
}

// dropSYN has a TCP socket drop packets with SYN and without ACK. A filter sees the TCP
// header (socket(7), SO_ATTACH_FILTER).
func dropSYN(fd int) error {
	const flags, syn, ack = 13, 0x02, 0x10
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: flags},
		{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: syn | ack},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: syn, Jt: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1<<31 - 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// end is that of the process.
func (s *Service) end() {
	if s.cfg.Store == nil {
		s.openNoMore()
	}
	s.closeListeners()
	s.before.close(func(string) bool { return false })
	for _, l := range s.open {
		l.end()
	}
	ctx, cancel := context.WithTimeout(context.Background(), DrainTime)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		s.cfg.Log.Warn("requests in progress are aborted", "connections", s.server.Connections(), "error", err)
	}
}

// leave has another one go on.
func (s *Service) leave() []Socket {
	s.mu.Lock()
	s.leaving = true
	s.mu.Unlock()
	var out []Socket
	names := map[*listening]string{}
	for name, l := range s.open {
		fd := -1
		err := withFD(l.inner, func(of int) (err error) {
			fd, err = dup(of)
			return err
		})
		if err != nil {
			s.cfg.Log.Error("a metadata listener cannot be handed over", "listener", name, "error", err)
			continue
		}
		names[l] = name
		out = append(out, Socket{name, fd})
		for _, fd := range l.conns {
			out = append(out, Socket{connPrefix + name, fd})
		}
	}
	s.closeListeners()
	ctx, cancel := context.WithTimeout(context.Background(), DrainTime)
	defer cancel()
	for _, k := range s.server.Leave(ctx) {
		l, _ := k.On.(*listening)
		out = append(out, Socket{connPrefix + names[l], k.FD})
	}
	if err := ctx.Err(); errors.Is(err, context.DeadlineExceeded) {
		s.cfg.Log.Warn("requests in progress were aborted", "after", DrainTime)
	}
	for name, fds := range s.before.sockets { // what was not opened yet
		for _, fd := range fds {
			out = append(out, Socket{name, fd})
		}
	}
	return out
}
