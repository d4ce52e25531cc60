package service

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/ovn-sluice/sluice/pkg/loop"
)

// Beater tells whoever steers requests that they are served.
type Beater interface{ Beat() error }

const (
	// beatInterval is between two beats.
	beatInterval = 500 * time.Millisecond
	// heartInterval is how long a Beater is used. What it writes to may have been
	// replaced, which it cannot see; metadata.staleAfter is longer by default.
	heartInterval = 2 * time.Second
)

// beat tells of each moment in which steered requests are served.
func (s *Service) beat(ctx context.Context) {
	if s.cfg.OpenHeart == nil {
		return
	}
	h := heart{open: s.cfg.OpenHeart}
	defer h.close()
	_ = loop.Every(ctx, beatInterval, nil, func() {
		now := time.Now()
		err := s.steeredServed(now)
		if err == nil {
			err = h.beat(now)
		}
		s.noteBeat(now, err)
	})
}

// steeredServed tells whether the steered listeners take connections. Where nothing is
// steered the heart says that the proxy runs: Neutron is told by it.
func (s *Service) steeredServed(now time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving {
		return nil // connections wait for a moment
	}
	if s.table == nil {
		return errNotOpen
	}
	for _, p := range s.places {
		if p.network != "" {
			continue
		}
		err := errNotOpen
		if l, w := s.open[p.socket], s.wait[p.socket]; l != nil {
			err = l.alive(now)
		} else if w != nil {
			err = w.err
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errNotOpen = errors.New("the listeners are not open yet")

func (s *Service) noteBeat(now time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.heart.Error
	if err == nil {
		s.heart.Last, s.heart.Error = now, ""
		if was != "" {
			s.cfg.Log.Info("the metadata proxy sends heartbeats")
		}
		return
	}
	s.heart.Error = err.Error()
	if was != "" {
		return
	}
	// Before its first beat it waits for the daemon, which makes what it needs.
	level := slog.LevelInfo
	if !s.heart.Last.IsZero() {
		level = slog.LevelWarn
	}
	s.cfg.Log.Log(context.Background(), level, "the metadata proxy sends no heartbeat; requests are left to OVN", "error", err)
}

// heart opens its Beater again and again.
type heart struct {
	open   func() (Beater, error)
	beater Beater
	opened time.Time
}

func (h *heart) beat(now time.Time) error {
	if h.beater == nil || now.Sub(h.opened) >= heartInterval {
		b, err := h.open()
		if err != nil {
			return err
		}
		h.close()
		h.beater, h.opened = b, now
	}
	if err := h.beater.Beat(); err != nil {
		h.close()
		return err
	}
	return nil
}

func (h *heart) close() {
	if c, ok := h.beater.(io.Closer); ok {
		_ = c.Close()
	}
	h.beater = nil
}
