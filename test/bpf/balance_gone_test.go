package bpf_test

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// place is where sessions are: on a gateway, or on a tap.
type place struct {
	d      *ebpf.Dataplane
	scope  intent.VNI
	ask    func(t *testing.T, p intent.Protocol, client, vip netip.AddrPort, flags string) (to netip.AddrPort)
	answer func(t *testing.T, p intent.Protocol, backend, client netip.AddrPort, flags string) (from netip.AddrPort)
}

func onGateway(t *testing.T) place {
	t.Helper()
	dir := bpffs(t)
	d := balanced(t, dir)
	tr := tracer(t, dir)
	return place{d, red,
		func(t *testing.T, p intent.Protocol, client, vip netip.AddrPort, flags string) netip.AddrPort {
			_, to := send(t, tr, asked(p, client, vip, flags))
			return to
		},
		func(t *testing.T, p intent.Protocol, backend, client netip.AddrPort, flags string) netip.AddrPort {
			knownIn(t, dir, 0)
			from, _ := send(t, tr, replied(p, backend, client, flags))
			return from
		},
	}
}

func onTap(t *testing.T) place {
	t.Helper()
	w := newTapWorld(t, ebpf.HookAuto)
	return place{w.d, onSwitch,
		func(t *testing.T, p intent.Protocol, client, vip netip.AddrPort, flags string) netip.AddrPort {
			_, to, _ := w.goes(t, w.asks(p, client, vip, flags))
			return to
		},
		func(t *testing.T, p intent.Protocol, backend, client netip.AddrPort, flags string) netip.AddrPort {
			from, _, _ := w.goes(t, w.gets(p, backend, client, flags))
			return from
		},
	}
}

// gone deletes VIPs.
func (p place) gone(t *testing.T, keys ...intent.VIPKey) {
	t.Helper()
	for _, err := range p.d.VIPs().Delete(t.Context(), keys) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A session ends with its VIP, whether or not its client pauses: packets in the gap keep nothing
// alive, be it that the address has another VIP, and those after it reach a backend of the VIP that
// was added again. Other VIPs' sessions of the same client go on.
func TestBalanceSessionOfGoneVIP(t *testing.T) {
	for where, at := range map[string]func(*testing.T) place{"gateway": onGateway, "tap": onTap} {
		t.Run(where, func(t *testing.T) {
			p, port := at(t), uint16(23000)
			p.gone(t, intent.VIPKey{VNI: p.scope, Protocol: intent.SCTP, Addr: vip6}) // it would take what other VIPs leave
			for _, c := range kindsOfFlows {
				for _, how := range []string{"alone", "beside another", "of all ports", "left to OVN", "left to OVN, of all ports"} {
					port++
					t.Run(c.name+", "+how, func(t *testing.T) {
						goneWithVIP(t, p, c.protocol, netip.AddrPortFrom(c.client, port), c.vip.Addr(), how)
					})
				}
			}
		})
	}
}

func goneWithVIP(t *testing.T, p place, proto intent.Protocol, client netip.AddrPort, a netip.Addr, how string) {
	list := backendsOf(map[bool]string{true: "10.10.0.%d", false: "fd00:10::%d"}[a.Is4()], 3, 9100)
	vipOf := func(port uint16, backends ...intent.Backend) intent.VIP {
		if port == 0 {
			for i := range backends {
				backends[i].Port = 0
			}
		}
		v := vip(proto, a, port, backends...)
		v.Key.VNI = p.scope
		return v
	}
	beside, of := vipOf(9101, list[2]), uint16(9100)
	if how == "of all ports" || how == "left to OVN, of all ports" {
		of = 0
	}
	first, again := vipOf(of, list[0]), vipOf(of, list[1])
	vip, other := netip.AddrPortFrom(a, 9100), netip.AddrPortFrom(a, 9101)
	old, next, third := netip.AddrPortFrom(list[0].Addr, 9100), netip.AddrPortFrom(list[1].Addr, 9100), netip.AddrPortFrom(list[2].Addr, 9100)
	if how == "left to OVN" || how == "left to OVN, of all ports" {
		first, old = first.ByOVN(), vip
	}
	apply(t, p.d.VIPs(), vips(beside, first))
	goes := func(when, flags string, to, want netip.AddrPort) {
		t.Helper()
		if got := p.ask(t, proto, client, to, flags); got != want {
			t.Errorf("%s: what %s sends to %s goes to %s, want %s", when, client, to, got, want)
		}
	}
	if how == "beside another" {
		goes("at first", "S", other, third)
		goes("at first", "A", other, third)
	}
	goes("at first", "S", vip, old)
	goes("at first", "A", vip, old)
	p.gone(t, first.Key)
	for i := range 3 {
		goes(fmt.Sprintf("without the VIP, packet %d", i), "A", vip, vip)
	}
	if from := p.answer(t, proto, netip.AddrPortFrom(list[0].Addr, 9100), client, "A"); from.Addr() == a {
		t.Errorf("without the VIP an answer is from %s", from)
	}
	apply(t, p.d.VIPs(), vips(again))
	if got := p.ask(t, proto, client, vip, "A"); got != next && (proto == intent.UDP || got != vip) {
		t.Errorf("what goes on to %s, added again, goes to %s; want %s, or of a connection OVN", vip, got, next)
	}
	if proto == intent.UDP {
		goes("with the VIP again", "S", vip, next)
		if from := p.answer(t, proto, next, client, "A"); from != vip {
			t.Errorf("an answer of %s is from %s, want %s", next, from, vip)
		}
	}
	if how == "beside another" {
		goes("with the VIP again", "A", other, third)
		if from := p.answer(t, proto, third, client, "A"); from != other {
			t.Errorf("an answer of %s is from %s, want %s", third, from, other)
		}
	}
	p.gone(t, again.Key, beside.Key)
}

// What a node knows of answers alone ends with the VIP, too: it has come from another node, and the
// client has not sent yet.
func TestBalanceAnswersOfGoneVIP(t *testing.T) {
	for _, c := range []struct{ client, vip netip.Addr }{{client4, vip4}, {client6, vip6}} {
		dir := bpffs(t)
		p := place{d: balanced(t, dir), scope: red}
		p.gone(t, intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: vip4, Port: 81}) // it shares the backends
		tr := tracer(t, dir)
		client, at := netip.AddrPortFrom(c.client, clientPort), netip.AddrPortFrom(c.vip, 80)
		key := intent.VIPKey{VNI: red, Protocol: intent.TCP, Addr: c.vip, Port: 80}
		choice, _, err := ebpf.Choose(worldVIPs()[key], client, at)
		if err != nil {
			t.Fatal(err)
		}
		backend := netip.AddrPortFrom(choice.Backend.Addr, choice.Backend.Port)
		answer := replied(intent.TCP, backend, client, "A")
		if from, _ := send(t, tr, answer); from != at {
			t.Fatalf("an answer is from %s, want %s", from, at)
		}
		p.gone(t, key)
		knownIn(t, dir, 0)
		if from, _ := send(t, tr, answer); from != backend {
			t.Errorf("without the VIP an answer is from %s, want %s", from, backend)
		}
	}
}

// A process that was killed while it deleted a VIP leaves its sessions to the next one, whether or
// not that is to have the VIP.
func TestBalanceGoneVIPOfKilled(t *testing.T) {
	for name, l := range leavingsOf {
		t.Run(name, func(t *testing.T) {
			dir := bpffs(t)
			d := balanced(t, dir)
			all := backendsOf(l.backends, 2, 8080)
			apply(t, d.VIPs(), vips(l.vip(all[0])))
			tr := tracer(t, dir)
			to := l.open(t, tr)
			m := raw(t, dir, "vips_v2")
			for key, row := range rowsOf(t, m) {
				if binary.BigEndian.Uint16([]byte(key[4:6])) != l.at.Port() {
					continue
				}
				clear(row[:16])
				row[10] = 4 // VIP_FLUSH, and no table
				if err := m.Put([]byte(key), row); err != nil {
					t.Fatal(err)
				}
			}
			tr.Close()
			d.Close()
			d = load(t, ebpf.Config{Dir: dir, Node: node()})
			apply(t, d.VIPs(), vips(l.vip(all[1])))
			allKnown(t, dir)
			tr = tracer(t, dir)
			for port := range to {
				if now := l.flow(t, tr, port, "A"); now.Addr() != all[1].Addr {
					t.Errorf("what goes on from port %d goes to %s, want %s", port, now, all[1].Addr)
				}
			}
			place{d: d, scope: red}.gone(t, l.vip().Key)
			for port := range to {
				if now := l.flow(t, tr, port, "A"); now != l.at {
					t.Errorf("without the VIP what goes on from port %d goes to %s", port, now)
				}
			}
		})
	}
}
