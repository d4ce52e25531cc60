package wire

import (
	"bufio"
	"log/slog"
	"net"
	"slices"
	"testing"
)

func endOfRIBOf(f Family) []byte {
	if f == ipv4 {
		return messageOf(typeUpdate, body(nil, nil))
	}
	return messageOf(typeUpdate, body(nil, nil, unreachOf(f)))
}

// No End-of-RIB passes before Finish, also not those of a ROUTE-REFRESH; it is told once that they
// were withheld, and those after Finish pass.
func TestWithheldEnds(t *testing.T) {
	v, _, _, news := talk(t, all)
	v.p.unfinished.Store(true)
	v.withheld, v.unended = slices.Clone(all.Families), slices.Clone(all.Families)
	silent := func(what string, f Family) {
		if out := v.say(nil, endOfRIBOf(f)); len(out) > 0 {
			t.Errorf("%s, %v: the neighbour gets %x", what, f, out)
		}
	}
	first := all.Families[0]
	silent("the first", first)
	silent("a refresh before the others", first)
	if len(news) != 0 {
		t.Error("told before all families have ended")
	}
	for _, f := range all.Families[1:] {
		silent("the first", f)
	}
	for _, f := range all.Families {
		silent("a refresh", f)
	}
	if len(news) != 1 || (<-news).Kind != Withheld {
		t.Error("Withheld is not told once")
	}
	v.p.unfinished.Store(false)
	for _, f := range all.Families {
		if len(v.say(nil, endOfRIBOf(f))) == 0 {
			t.Errorf("after Finish, %v: the neighbour gets nothing", f)
		}
	}
	if len(v.unended) != 0 || len(news) != 0 {
		t.Errorf("%v have not ended, %d events", v.unended, len(news))
	}
}

// The neighbour gets no End-of-RIB of a family that is not agreed.
func TestEndsOfOtherFamilies(t *testing.T) {
	for _, agreed := range known {
		v, _, _, _ := talk(t, Agreement{Families: []Family{agreed}})
		for _, f := range append(slices.Clone(known), Family{1, 2}) {
			if got := len(v.say(nil, endOfRIBOf(f))) > 0; got != (f == agreed) {
				t.Errorf("agreed is %v: %v passes: %v", agreed, f, got)
			}
		}
	}
}

// One that Finish overtakes before all families have ended is withheld, too: the server sends all
// once more.
func TestFinishBetweenEnds(t *testing.T) {
	v, _, _, news := talk(t, all)
	v.withheld = slices.Clone(all.Families)
	for _, f := range append(slices.Clone(all.Families[:1]), all.Families...) {
		if len(v.say(nil, endOfRIBOf(f))) > 0 {
			t.Errorf("%v passes", f)
		}
	}
	if len(news) != 1 {
		t.Errorf("%d events", len(news))
	}
}

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
