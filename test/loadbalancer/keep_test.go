package loadbalancer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
)

// option sets an option of a load balancer that add has made.
func (w *world) option(protocol, vip, key, value string) {
	w.Helper()
	w.nb("set", "Load_Balancer", "lb "+protocol+" "+vip, fmt.Sprintf("options:%s=%s", key, value))
}

// backends gives a VIP other backends, and waits until a1 has them.
func (w *world) backends(vip netip.Addr, list []string) {
	w.Helper()
	at := intent.FormatEndpoint(vip, vipHTTP)
	w.nb("set", "Load_Balancer", "lb tcp "+at, fmt.Sprintf("vips:%q=%q", at, strings.Join(list, ",")))
	w.eventually("a1 has the backends", func() error {
		vips, err := w.vips("a1")
		for _, v := range vips {
			if v.Address == vip && len(v.Backends) == len(list) && v.State == "ok" && v.Path == "ebpf" {
				return nil
			}
		}
		return fmt.Errorf("%+v (%w)", vips, err)
	})
}

// With session affinity a client keeps its backend, also when others come and go, and on
// the other gateway.
func TestAffinity(t *testing.T) {
	w := shared(t)
	for _, vip := range []netip.Addr{netip.MustParseAddr("10.99.0.9"), netip.MustParseAddr("fd00:99::9")} {
		at := w.web(vip)
		list := endpoints(vip, backend.HTTPPort)
		w.option("tcp", at, "affinity_timeout", "600")
		var mine string
		same := func(when string) {
			t.Helper()
			for range 10 {
				name, _, err := w.ask("c-fabric", "tcp", vip)
				if err != nil {
					t.Fatal(err)
				}
				if mine == "" {
					mine = name
				}
				if name != mine {
					t.Fatalf("%s: the client had %s, and now %s", when, mine, name)
				}
			}
		}
		w.backends(vip, list[:4]) // shows that the option was read, too
		w.backends(vip, list)
		same("at first")
		own := list[mine[len(mine)-1]-'1']
		for _, other := range list {
			if other != own {
				w.backends(vip, []string{own, other})
				same("with " + other)
			}
		}
		w.backends(vip, list)
		same("with all")
		if err := w.MoveGateways(w.Context(), "a2"); err != nil {
			t.Fatal(err)
		}
		w.eventually("an answer by a2", func() error {
			_, _, err := w.ask("c-fabric", "tcp", vip)
			return err
		})
		same("on a2")
		if err := w.MoveGateways(w.Context(), "a1"); err != nil {
			t.Fatal(err)
		}
		w.eventually("an answer by a1", func() error {
			_, _, err := w.ask("c-fabric", "tcp", vip)
			return err
		})
	}
}

// With ct_flush the connections to a backend that is taken out end, and no others.
func TestFlush(t *testing.T) {
	w := shared(t)
	for _, vip := range []netip.Addr{netip.MustParseAddr("10.99.0.10"), netip.MustParseAddr("fd00:99::10")} {
		at := w.web(vip)
		w.option("tcp", at, "ct_flush", "true")
		list := endpoints(vip, backend.HTTPPort)
		w.backends(vip, list)
		streams := w.streams("c-fabric", vip, 20)
		w.backends(vip, list[1:])
		// A client that only listens hears nothing more; one that sends is told.
		w.eventually("the connections to be1 have ended", func() error {
			before := lines(streams, "be1")
			time.Sleep(time.Second) // ten lines
			if after := lines(streams, "be1"); after != before {
				return fmt.Errorf("%d lines came in a second", after-before)
			}
			return nil
		})
		streams.check("be1")
	}
}

// lines counts what has come on connections to a backend.
func lines(s *streams, name string) (n int) {
	for _, one := range s.files {
		if got, _ := one.read(); got[0] == name {
			n += len(got)
		}
	}
	return n
}

// Words of a VIP stand for variables of the chassis: of a VIP's address as it is in matches of
// OVN's flows, of backends with their ports.
func TestTemplate(t *testing.T) {
	w := shared(t)
	for family, vip := range map[string]netip.Addr{"ipv4": netip.MustParseAddr("10.99.0.11")} {
		t.Run(family, func(t *testing.T) { testTemplate(&world{T: t, Lab: w.Lab}, family, vip) })
	}
}

func testTemplate(w *world, family string, vip netip.Addr) {
	for _, chassis := range []string{"a1", "a2", "a3"} {
		w.nb("create", "Chassis_Template_Var", "chassis="+chassis,
			fmt.Sprintf("variables={vip=%q,backends=%q}", vip, strings.Join(endpoints(vip, backend.HTTPPort), ",")))
	}
	w.Cleanup(func() {
		if _, err := w.NB(context.Background(), "a", "--all", "destroy", "Chassis_Template_Var"); err != nil {
			w.Error(err)
		}
	})
	name := "lb template " + family
	w.nb("--template", "lb-add", name, "^vip:80", "^backends", "tcp", family)
	w.forget(name)
	w.nb("lr-lb-add", router, name)
	w.nb("ls-lb-add", lab.SwitchName("red", "other"), name)
	for _, c := range []asking{vms[1], fabric} {
		w.answered(c.name, "tcp", vip)
		w.spread(c, "tcp", vip)
	}
	if w.known("a1", vip) == 0 || w.onTaps("a3", vip) == 0 {
		w.Error("eBPF knows no flow")
	}
}

// A VIP that goes from OVN to eBPF, and back, leaves connections where they are.
func TestFlip(t *testing.T) {
	w := shared(t)
	for _, c := range []struct{ vip, elsewhere string }{{"10.99.0.12", "10.77.0.9:8080"}, {"fd00:99::12", "[fd00:77::9]:8080"}} {
		vip := netip.MustParseAddr(c.vip)
		w.web(vip)
		list := endpoints(vip, backend.HTTPPort)
		at := intent.FormatEndpoint(vip, vipHTTP)
		path := func(want string, backends []string) {
			t.Helper()
			w.nb("set", "Load_Balancer", "lb tcp "+at, fmt.Sprintf("vips:%q=%q", at, strings.Join(backends, ",")))
			w.eventually("a1 has the path "+want, func() error {
				vips, err := w.vips("a1")
				for _, v := range vips {
					if v.Address == vip && v.Path == want && len(v.Backends) == len(backends) {
						return nil
					}
				}
				return fmt.Errorf("%+v (%w)", vips, err)
			})
			// ovn-controller, too, which says when it has all flows.
			w.nb("--wait=hv", "sync")
		}
		ours := w.streams("c-fabric", vip, 8)
		path("ovn", append([]string{c.elsewhere}, list...))
		ours.check()
		// Nobody answers for the backend that is elsewhere: curl tries another connection.
		theirs := w.streams("c-fabric", vip, 8, "--connect-timeout", "1", "--retry", "20", "--retry-connrefused", "--retry-delay", "0")
		path("ebpf", list)
		ours.check()
		theirs.check()
		path("ovn", append([]string{c.elsewhere}, list...))
		ours.check()
		theirs.check()
	}
}

// 'lb show' counts slots and sessions, and both gateways have the same table.
func TestShow(t *testing.T) {
	w := shared(t)
	vip := netip.MustParseAddr("fd00:99::13")
	at := w.web(vip)
	const be1, be2, be3 = "[fd00:10::21]:8080", "[fd00:10::22]:8080", "[fd00:10::23]:8080"
	if out, err := w.Exec(w.Context(), "a1", w.sluicectl(), "-o", "json", "lb", "drain", "lb tcp "+at, be2); err != nil || !json.Valid([]byte(out)) {
		t.Fatal(err, out)
	}
	show := func(node string) (v status.VIP, err error) {
		out, err := w.Exec(w.Context(), node, w.sluicectl(), "-o", "json", "lb", "show", at)
		var list []status.VIP
		if err = errors.Join(err, json.Unmarshal([]byte(out), &list)); err != nil || len(list) != 1 {
			return v, fmt.Errorf("%s: %s (%w)", node, out, err)
		}
		return list[0], nil
	}
	w.eventually("be2 is draining", func() error {
		for _, n := range []string{"a1", "a2"} {
			v, err := show(n)
			if err != nil || v.Backends[1].State != status.BackendDraining || v.State != status.OK {
				return fmt.Errorf("%s: %+v (%w)", n, v, err)
			}
		}
		return nil
	})
	w.streams("c-fabric", vip, 12)
	here, err := show("a1")
	if err != nil {
		t.Fatal(err)
	}
	there, err := show("a2")
	if err != nil {
		t.Fatal(err)
	}
	if here.TableHash == "" || here.TableHash != there.TableHash {
		t.Errorf("the tables are %q and %q", here.TableHash, there.TableHash)
	}
	var slots, sessions uint32
	for _, b := range here.Backends {
		slots += b.Slots
		sessions += b.Sessions
		if drained := b.State == status.BackendDraining; drained != (b.Slots == 0) || drained && b.Sessions > 0 {
			t.Errorf("%+v", b)
		}
	}
	if slots != here.Slots || sessions != 12 {
		t.Errorf("%d of %d slots and %d of 12 sessions: %+v", slots, here.Slots, sessions, here.Backends)
	}
	// Both nodes write at a time, of several backends.
	for range 5 {
		var all errgroup.Group
		for _, one := range []struct{ node, verb, backend string }{{"a1", "undrain", be2}, {"a2", "drain", be1}, {"a1", "drain", be3}} {
			all.Go(func() error {
				if out, err := w.Exec(w.Context(), one.node, w.sluicectl(), "lb", one.verb, "lb tcp "+at, one.backend); err != nil {
					return fmt.Errorf("%+v: %w\n%s", one, err, out)
				}
				return nil
			})
		}
		if err := all.Wait(); err != nil {
			t.Error(err)
		}
	}
	w.eventually("be2 is back, and the others have drained", func() error {
		v, err := show("a1")
		if err != nil || v.Backends[0].State != status.BackendDraining || v.Backends[1].State != status.BackendUp || v.Backends[2].State != status.BackendDraining {
			return fmt.Errorf("%+v (%w)", v, err)
		}
		return nil
	})
	for _, c := range []struct{ lb, backend, says string }{
		{"lb tcp " + at, "[fd00:10::99]:8080", "[fd00:10::99]:8080: not found"}, {"nobody", be2, `load balancer "nobody": not found`}, {"lb tcp " + at, "x", "no IP address"},
	} {
		if out, err := w.Exec(w.Context(), "a1", w.sluicectl(), "lb", "drain", c.lb, c.backend); err == nil || !strings.Contains(err.Error()+out, c.says) {
			t.Errorf("drain %s of %s: %v\n%s", c.backend, c.lb, err, out)
		}
	}
}
