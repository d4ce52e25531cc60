package evpn_test

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
)

// ownRed are routes of cloud A's red tenant.
var ownRed = []string{"10.10.0.0/24", "10.10.0.11/32", "fd00:10::/64", "fd00:10::11/128"}

// startAt runs sluiced of a node anew with neighbours and more configuration.
func (w *world) startAt(node, neighbors, config string) {
	w.Helper()
	w.kill(node, "sluiced")
	text := strings.Replace(lab.Config, "    - address: %s\n", neighbors, 1) + config
	if _, err := w.StartSluiced(w.Context(), node, lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: text}); err != nil {
		w.Fatal(err)
	}
	w.ready(node)
}

// hasProblem waits until a node has a problem of a kind and reason whose text has all the words,
// or has it no longer.
func (w *world) hasProblem(node, kind, why string, there bool, words ...string) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s has a problem %s, %s: %v", node, kind, why, there), func() error {
		s, err := w.status(node)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(s.Problems, func(o status.Object) bool { return o.Kind == kind && o.Reason == why })
		if (i >= 0) != there {
			return fmt.Errorf("problems %+v", s.Problems)
		}
		for _, word := range words {
			if there && !strings.Contains(s.Problems[i].Error, word) {
				return fmt.Errorf("%q is not in %q", word, s.Problems[i].Error)
			}
		}
		return nil
	})
}

// The node's tunnel address goes, comes back, moves to another device and is replaced, in both
// families; the session with the reflector is one of the other family and stays.
func TestVTEPIsFollowed(t *testing.T) {
	w := shared(t)
	n, rr := w.node("a1"), w.node("rr")
	defer func() {
		w.exec("a1", "sh", "-ec", fmt.Sprintf("ip addr replace %s/32 dev lo; ip addr replace %s/128 dev lo nodad", n.VTEP4, n.VTEP6))
		w.mendUnderlay("a1")
		w.configured("a1", fmt.Sprintf("    - address: %s\n", rr.VTEP4))
	}()
	for _, f := range []struct{ vtep, session, reflector netip.Addr }{{n.VTEP4, n.VTEP6, rr.VTEP6}, {n.VTEP6, n.VTEP4, rr.VTEP4}} {
		w.startAt("a1", fmt.Sprintf("    - {address: \"%s\", localAddress: \"%s\"}\n", f.reflector, f.session), fmt.Sprintf("fabric: {vtep: \"%s\"}\n", f.vtep))
		w.reflected(true)
		at := fmt.Sprintf("%s/%d", f.vtep, f.vtep.BitLen())
		address := func(do, device string) {
			w.exec("a1", "sh", "-ec", "ip addr "+do+" "+at+" dev "+device+map[bool]string{true: " nodad", false: ""}[f.vtep.Is6() && do == "add"])
		}
		address("del", "lo")
		w.reflected(false)
		w.hasProblem("a1", "vtep", "no-vtep", true, f.vtep.String(), "device lo")
		for src, dst := range map[string]string{addrA4: addrB4, addrA6: addrB6} {
			w.withheld("a1", src, dst, fmt.Sprintf("no-vtep: the VTEP %s is gone from device lo", f.vtep), "no-vtep")
		}
		address("add", "lo")
		w.reflected(true)
		w.hasProblem("a1", "vtep", "no-vtep", false)

		before := w.rests("a1")
		address("add", lab.UnderlayLink)
		address("del", "lo")
		w.eventually("the move is seen", func() error {
			tail := w.process("a1", "sluiced").LogTail(50)
			if !strings.Contains(tail, fmt.Sprintf("VTEP is on another device\" vtep=%s device=%s", f.vtep, lab.UnderlayLink)) {
				return errors.New(tail)
			}
			return nil
		})
		address("del", lab.UnderlayLink)
		w.reflected(false)
		w.hasProblem("a1", "vtep", "no-vtep", true, f.vtep.String(), "device "+lab.UnderlayLink)
		once, err := w.bgp("a1")
		if err != nil {
			t.Fatal(err)
		}
		address("add", "lo")
		w.reflected(true)
		if after, err := w.bgp("a1"); err != nil || after.Flaps != before.Flaps || after.State != "established" || once.MessagesOut > before.MessagesOut+uint64(before.Sent) {
			t.Errorf("%v: %d UPDATEs for %d routes that were withdrawn once; %+v", err, once.MessagesOut-before.MessagesOut, before.Sent, after)
		}
		w.mendUnderlay("a1") // the kernel has taken the routes with that source off
		if f.vtep.Is4() {    // the others have tunnels of IPv4
			w.connected()
		}
	}
	w.replaced(n, rr)
	w.clean()
}

// reflected waits until the reflector has the routes of cloud A's red tenant, or none of them.
// FRR's JSON has no next hop of IPv6 on a session of IPv4.
func (w *world) reflected(want bool) {
	w.Helper()
	w.eventually(fmt.Sprintf("the reflector has the routes: %v", want), func() error {
		routes, err := w.rrRoutes(vniRed)
		if err != nil {
			return err
		}
		has := map[string]bool{}
		for r := range routes {
			has[r.Prefix] = true
		}
		for _, p := range ownRed {
			if has[p] != want {
				return fmt.Errorf("%s: %v", p, has[p])
			}
		}
		return nil
	})
}

// replaced gives a node another tunnel address in the place of the first one on lo.
func (w *world) replaced(n, rr lab.Node) {
	w.Helper()
	other := "172.30.0.99"
	w.startAt("a1", fmt.Sprintf("    - {address: \"%s\", localAddress: \"%s\"}\n", rr.VTEP6, n.VTEP6), "")
	w.announced("a1", vniRed, ownRed...)
	from := func(vtep, not string) {
		w.eventually("all routes of a1 have the next hop "+vtep, func() error {
			routes, err := w.rrRoutes(vniRed)
			if err != nil {
				return err
			}
			for _, p := range ownRed {
				if !routes[rrRoute{vniRed, p, vtep}] || routes[rrRoute{vniRed, p, not}] {
					return fmt.Errorf("%s: %v", p, routes)
				}
			}
			return nil
		})
	}
	from(n.VTEP4.String(), other)
	w.exec("a1", "sh", "-ec", fmt.Sprintf("ip addr del %s/32 dev lo; ip addr add %s/32 dev lo", n.VTEP4, other))
	from(other, n.VTEP4.String())
	w.exec("a1", "sh", "-ec", fmt.Sprintf("ip addr add %s/32 dev lo; ip addr del %s/32 dev lo", n.VTEP4, other))
	from(n.VTEP4.String(), other)
	w.mendUnderlay("a1")
	w.connected()
}

// A second bpffs is mounted over the first, both are unmounted, and another one is mounted:
// nothing is lost or withdrawn, and the pins are made again; so are pins that somebody removes.
func TestMountsOverPins(t *testing.T) {
	w := shared(t)
	before := w.rests("a1")
	streams := []*stream{w.stream("a-red1", addrB4), w.stream("b-red1", addrA6)}
	nodes := w.chassis()
	pins := map[string][]string{}
	for _, n := range nodes {
		var err error
		if pins[n], err = w.pins(n); err != nil {
			t.Fatal(err)
		}
	}
	at := filepath.Dir(w.node("a1").BPFFS)
	healed := func(what string) {
		for _, n := range nodes {
			w.eventually(what+": the pins of "+n+" are there", func() error {
				now, err := w.pins(n)
				if err != nil {
					return err
				}
				gone, err := w.ofGoneDevices(n)
				if err == nil && !slices.Equal(slices.DeleteFunc(now, gone), slices.DeleteFunc(slices.Clone(pins[n]), gone)) {
					err = fmt.Errorf("pins\n%v, were\n%v", now, pins[n])
				}
				return err
			})
			w.hasProblem(n, "pins", "pins-lost", false)
		}
	}
	w.exec("a1", "mount", "-t", "bpf", "-o", "mode=0700", "bpf", at)
	healed("mounted over")
	w.exec("a1", "sh", "-ec", "umount -l "+at+"; umount -l "+at)
	for _, n := range nodes {
		w.hasProblem(n, "pins", "pins-lost", true, w.node(n).BPFFS, "(type ")
	}
	w.exec("a1", "mount", "-t", "bpf", "-o", "mode=0700", "bpf", at)
	healed("mounted anew")
	w.exec("a1", "sh", "-ec", `cd "$SLUICE_BPFFS" && ls | grep -v ^link_ | xargs rm`)
	healed("removed, all but those of links")
	after, err := w.bgp("a1")
	if err != nil || after.MessagesOut != before.MessagesOut || after.Flaps != before.Flaps {
		t.Errorf("%v: %d UPDATEs, %d before", err, after.MessagesOut, before.MessagesOut)
	}
	for _, s := range streams {
		if sent, lost := s.stop(); lost > 0 {
			t.Errorf("%s: %d of %d packets lost", s.name, lost, sent)
		}
	}
	w.kill("a1", "sluiced")
	w.startAgain("a1", "sluiced")
	w.ready("a1")
	healed("restarted")
	w.exec("a1", "sh", "-ec", `rm -r "$SLUICE_BPFFS"`)
	healed("removed, the links too")
	w.ready("a1")
	w.connected()
	w.clean()
}

// pins lists a node's pins that are complete.
func (w *world) pins(node string) ([]string, error) {
	out, err := w.Exec(w.Context(), node, "sh", "-c", `cd "$SLUICE_BPFFS" && ls | grep -v _new$`)
	return strings.Fields(out), err
}

// ofGoneDevices tells pins of links whose devices are gone: sluiced removes them at a time of its own.
func (w *world) ofGoneDevices(node string) (func(pin string) bool, error) {
	out, err := w.Exec(w.Context(), node, "ip", "-o", "link")
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for line := range strings.Lines(out) {
		index, _, _ := strings.Cut(line, ":")
		there[index] = true
	}
	return func(pin string) bool {
		index := pin[strings.LastIndex(pin, "_")+1:]
		_, err := strconv.Atoi(index)
		return strings.HasPrefix(pin, "link_") && err == nil && !there[index]
	}, nil
}

// A session with an unnumbered neighbour ends with its link, and comes up on the link that is
// made again, long before the hold time; the one with a loopback stays.
func TestSessionEndsWithItsLink(t *testing.T) {
	w := shared(t)
	rr := w.node("rr")
	const link = "host0"
	configure := func(lines ...string) {
		argv := []string{"vtysh", "-c", "configure terminal", "-c", fmt.Sprintf("router bgp %d", lab.FabricAS)}
		for _, l := range lines {
			argv = append(argv, "-c", l)
		}
		w.exec("rr", argv...)
	}
	connect := func() {
		w.exec("rr", "ip", "link", "add", link, "type", "veth", "peer", "name", link, "netns", w.node("a1").Netns)
		w.exec("rr", "ip", "link", "set", link, "up")
		w.exec("a1", "ip", "link", "set", link, "up")
	}
	connect()
	configure("neighbor "+link+" interface remote-as internal", "address-family l2vpn evpn", "neighbor "+link+" activate")
	defer func() {
		configure("no neighbor " + link + " interface remote-as internal")
		w.exec("a1", "ip", "link", "del", link)
		w.configured("a1", fmt.Sprintf("    - address: %s\n", rr.VTEP4))
		w.clean()
	}()
	w.startAt("a1", fmt.Sprintf("    - address: %s\n    - {interface: %s, asn: %d, holdTime: 1h}\n", rr.VTEP4, link, lab.FabricAS), "")
	state := func(up bool, flaps uint32, words string) {
		w.eventually(fmt.Sprintf("the session on the link is up: %v", up), func() error {
			all, err := w.neighbors("a1")
			if err == nil && ((all[1].State == "established") != up || all[1].Flaps != flaps || !strings.Contains(all[1].LastError, words)) {
				err = fmt.Errorf("%+v", all[1])
			}
			return err
		})
	}
	state(true, 0, "")
	w.exec("a1", "ip", "link", "del", link)
	state(false, 1, "its link "+link+" is down")
	connect()
	state(true, 1, "")
	if all, err := w.neighbors("a1"); err != nil || all[0].State != "established" || all[0].Flaps != 0 {
		t.Errorf("the session with the loopback: %v, %+v", err, all)
	}
}
