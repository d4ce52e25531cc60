package service

import (
	"context"
	"errors"
)

// closeListeners ends the taking of connections. The sockets go on listening where others
// have them.
func (s *Service) closeListeners() {
	for _, l := range s.open {
		_ = l.inner.Close()
	}
	s.serving.Wait()
}

// end is that of the process.
func (s *Service) end() {
	s.closeListeners()
	s.before.close(func(string) bool { return false })
	for _, l := range s.open {
		l.end()
	}
	ctx, cancel := context.WithTimeout(context.Background(), DrainTime)
	defer cancel()
	if err := s.server.Shutdown(ctx); err != nil {
		s.cfg.Log.Warn("requests under way are broken off", "connections", s.server.Connections(), "error", err)
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
		s.cfg.Log.Warn("requests under way were broken off", "after", DrainTime)
	}
	for name, fds := range s.before.sockets { // what was not opened yet
		for _, fd := range fds {
			out = append(out, Socket{name, fd})
		}
	}
	return out
}
