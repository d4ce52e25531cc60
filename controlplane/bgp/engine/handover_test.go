package engine

import (
	"log/slog"
	"net"
	"reflect"
	"sync/atomic"
	"testing"
)

// The BGP server of this version takes connections that it is given: without that each
// session of a start waits for the server's connect timer.
func TestServerTakesConnections(t *testing.T) {
	if _, accepted := New(slog.New(slog.DiscardHandler), &Handles{}, new(atomic.Bool)); accepted == nil {
		t.Error("it has no queue of accepted connections")
	}
}

// Another version may have no such queue, or one of another kind: it is left alone.
func TestServerWithoutQueue(t *testing.T) {
	var none struct{ listeners []net.Listener }
	var other struct{ acceptCh chan net.Conn }
	for _, srv := range []reflect.Value{reflect.ValueOf(&none).Elem(), reflect.ValueOf(&other).Elem()} {
		if handover(srv) != nil {
			t.Errorf("%s has a queue", srv.Type())
		}
	}
	if other.acceptCh != nil || none.listeners != nil {
		t.Error("a field was set")
	}
}
