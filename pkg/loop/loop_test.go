package loop

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Signals that nobody has taken are one.
func TestSignal(t *testing.T) {
	s := NewSignal()
	s.Send()
	s.Send()
	<-s
	select {
	case <-s:
		t.Error("two signals")
	default:
	}
}

// A signal has the loop run before its period is over, and the end of the context ends it.
func TestEvery(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, runs := NewSignal(), 0
	err := Every(ctx, time.Hour, s, func() {
		if runs++; runs == 3 {
			cancel()
			return
		}
		s.Send()
	})
	if err != nil || runs != 3 {
		t.Errorf("%d runs, error %v", runs, err)
	}
	if Sleep(ctx, time.Hour) {
		t.Error("the context has ended, and goes on")
	}
	for range 100 { // both have come: the end counts
		if Sleep(ctx, 0) {
			t.Fatal("the context has ended, and goes on after no time")
		}
	}
	if !Sleep(t.Context(), 0) {
		t.Error("the context goes on, and has ended")
	}
}

func TestIgnoreEnd(t *testing.T) {
	other := errors.New("other")
	if err := IgnoreEnd(fmt.Errorf("a part: %w", context.Canceled)); err != nil {
		t.Error(err)
	}
	if err := IgnoreEnd(other); !errors.Is(err, other) {
		t.Error(err)
	}
}
