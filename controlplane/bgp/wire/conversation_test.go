package wire

import (
	"bufio"
	"log/slog"
	"net"
	"testing"
)

// pair is a TCP connection.
func pair(t *testing.T) (near *net.TCPConn, far end) {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if near, err = l.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = near.Close(), c.Close() })
	return near, end{t, c.(*net.TCPConn), bufio.NewReader(c)}
}

// talk is a conversation that is committed to an agreement, with both ends of it, and what
// is told of it.
func talk(t *testing.T, a Agreement) (v *conversation, server, far end, news chan Event) {
	t.Helper()
	news = make(chan Event, 10)
	p := newPeer(New(slog.New(slog.DiscardHandler), Own{}, func(e Event) { news <- e }), Neighbor{}, nil)
	t.Cleanup(p.cancel)
	local, server := pair(t)
	v = newConversation(p, local)
	t.Cleanup(v.cancel)
	v.remote, far = pair(t)
	v.agreement, v.confirms = a, [2]bool{true, true}
	close(v.committed)
	return v, server, far, news
}

// What the neighbour said before it stopped reading is why the session ended.
func TestLastWordsAfterAWriteError(t *testing.T) {
	v, server, far, news := talk(t, all)
	v.patience = -1 // any write fails
	far.send(messageOf(typeNotification, []byte{6, 2}))
	server.send(keepalive)
	_ = server.c.CloseWrite()
	v.send()
	v.receive(bufio.NewReader(v.remote))
	if e := <-news; e.Kind != Ended || e.End.Received == nil || e.End.Received.Subcode != 2 {
		t.Errorf("told %+v", e)
	}
	server.wants("notification 6/2")
}

// A NOTIFICATION that ends a session for good is a Hard Reset to the server, which remembers
// the N bit of another session.
func TestNotificationWithoutTheNBit(t *testing.T) {
	for _, tt := range []struct {
		name          string
		ever, notices bool
		sends, want   string
	}{
		{"no graceful restart ever", false, false, "\x06\x02why", "\x06\x02why"},
		{"with the N bit", true, true, "\x06\x02why", "\x06\x02why"},
		{"without it", true, false, "\x06\x02why", "\x06\x09\x06\x02why"},
		{"a Hard Reset", true, true, "\x06\x09\x06\x02", "\x06\x09\x06\x02"},
	} {
		a := all
		a.Restart, a.Notices = tt.ever, tt.notices
		v, server, far, news := talk(t, a)
		v.p.restarts = tt.ever
		far.send(messageOf(typeNotification, []byte(tt.sends)))
		_ = far.c.CloseWrite()
		v.receive(bufio.NewReader(v.remote))
		msg, err := readMessage(server.r, make([]byte, maxMessage))
		if err != nil || string(msg[headerLen:]) != tt.want {
			t.Errorf("%s: the server gets %x, %v", tt.name, msg, err)
		}
		if e := <-news; e.End.Received == nil || e.End.Received.Subcode != tt.sends[1] {
			t.Errorf("%s: told %+v", tt.name, e)
		}
	}
}
