package loadbalancer_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/lab"
)

// asking is a machine of cloud A that asks.
type asking struct {
	name string
	// node is where it is, network its network.
	node, network string
	addresses     [2]netip.Addr
}

// vms are one on the backends' switch, and one on another of their router, whose node
// is no gateway.
var vms = []asking{
	{"c-same", "a2", "net", [2]netip.Addr{netip.MustParseAddr("10.10.0.31"), netip.MustParseAddr("fd00:10::31")}},
	{"c-net", "a3", "other", [2]netip.Addr{netip.MustParseAddr("10.40.0.11"), netip.MustParseAddr("fd00:40::11")}},
}

// onSwitches has load balancers of the router hang on its switches, too.
func (w *world) onSwitches(protocol string, vips map[string][]string) {
	w.Helper()
	w.add(protocol, vips)
	for vip := range vips {
		for _, network := range []string{"net", "other"} {
			w.nb("ls-lb-add", lab.SwitchName("red", network), "lb "+protocol+" "+vip)
		}
	}
}

// onTaps counts the flows to a VIP that the taps' programs of a node know.
func (w *world) onTaps(node string, vip netip.Addr) int {
	w.Helper()
	return w.knownIn(owned.ClientPins(w.node(node).BPFFS), vip)
}

// A load balancer of switches is a VIP for their VMs, by both families and protocols,
// in their own network and outside of it, on taps.
func TestVIPFromVMs(t *testing.T) {
	w := shared(t)
	vips, http, udp := allVIPs()
	w.onSwitches("tcp", http)
	w.onSwitches("udp", udp)
	for _, protocol := range []string{"tcp", "udp"} {
		for _, a := range vips {
			for _, client := range vms {
				t.Run(fmt.Sprintf("%s %s of %s", protocol, a, client.name), func(t *testing.T) {
					w := &world{T: t, Lab: w.Lab}
					began, asked := w.onTaps(client.node, a), map[netip.AddrPort]bool{}
					w.eventually("eBPF answers", func() error {
						_, from, err := w.ask(client.name, protocol, a)
						asked[from] = true
						if err == nil && w.onTaps(client.node, a) == began {
							err = errors.New("OVN did")
						}
						return err
					})
					began = w.onTaps(client.node, a)
					flows := 0
					for _, got := range w.spread(client, protocol, a) {
						if !asked[got.from] { // a port may come twice
							asked[got.from] = true
							flows++
						}
					}
					if n := w.onTaps(client.node, a) - began; n < flows {
						t.Errorf("eBPF knows %d flows more, want %d", n, flows)
					}
				})
			}
		}
	}
}

// pathFor waits until a VIP has a path for a VM.
func (w *world) pathFor(m asking, vip netip.Addr, path string, backends int) {
	w.Helper()
	w.eventually(fmt.Sprintf("%s has the path %s for %s", vip, path, m.name), func() error {
		list, err := w.vips(m.node)
		for _, v := range list {
			if v.Switch == lab.SwitchName("red", m.network) && v.Address == vip && v.Path == path && v.State == "ok" && len(v.Backends) == backends {
				return nil
			}
		}
		return fmt.Errorf("%+v (%w)", list, err)
	})
}

// vm is what a node says of a VM.
func (w *world) vm(node, name string) (status.VM, error) {
	out, err := w.Exec(w.Context(), node, w.sluicectl(), "-o", "json", "lb", "vms")
	var list []status.VM
	err = errors.Join(err, json.Unmarshal([]byte(out), &list))
	for _, m := range list {
		if m.Port == name {
			return m, err
		}
	}
	return status.VM{}, fmt.Errorf("%s has no %s: %+v (%w)", node, name, list, err)
}

// answered waits until backends answer a client on a VIP.
func (w *world) answered(client, protocol string, vip netip.Addr) {
	w.Helper()
	w.eventually(fmt.Sprintf("an answer of %s to %s by %s", vip, client, protocol), func() error {
		_, _, err := w.ask(client, protocol, vip)
		return err
	})
}

// webOnSwitches is web for VMs: it waits until eBPF answers c-same and c-net.
func (w *world) webOnSwitches(vip netip.Addr) (at string) {
	w.Helper()
	at = intent.FormatEndpoint(vip, vipHTTP)
	w.onSwitches("tcp", map[string][]string{at: endpoints(vip, backend.HTTPPort)})
	for _, m := range vms {
		w.pathFor(m, vip, "ebpf", lab.Backends)
		w.eventually("eBPF balances what "+m.name+" sends", func() error {
			got, err := w.vm(m.node, m.name)
			if err == nil && (got.Path != "ebpf" || got.State != "ok") {
				err = fmt.Errorf("%+v", got)
			}
			return err
		})
		w.answered(m.name, "tcp", vip)
	}
	return at
}

// Connections of VMs go on where they are: when other backends come and go, when
// sluiced is killed and starts again, and when OVN takes the VIP over, and gives it back.
func TestVMsConnectionsGoOn(t *testing.T) {
	w := shared(t)
	for i, vip := range []netip.Addr{netip.MustParseAddr("10.10.0.101"), netip.MustParseAddr("fd00:99::20")} {
		client := vms[i]
		t.Run(client.name, func(t *testing.T) {
			w := &world{T: t, Lab: w.Lab}
			at := w.webOnSwitches(vip)
			list := endpoints(vip, backend.HTTPPort)
			before := w.onTaps(client.node, vip)
			streams := w.streams(client.name, vip, 15)
			if n := w.onTaps(client.node, vip) - before; n < 15 {
				t.Errorf("eBPF knows %d of 15 flows", n)
			}
			w.nb("set", "Load_Balancer", "lb tcp "+at, fmt.Sprintf("vips:%q=%q", at, strings.Join(list[1:], ",")))
			w.pathFor(client, vip, "ebpf", lab.Backends-1)
			streams.check()
			p, err := w.Process(client.node, "sluiced")
			if err == nil {
				err = p.Kill()
			}
			if err != nil {
				t.Fatal(err)
			}
			streams.check()
			if name, _, err := w.ask(client.name, "tcp", vip); err != nil || name == "be1" {
				t.Errorf("without sluiced a new connection was answered by %q (%v)", name, err)
			}
			w.sluiced(client.node, w.configuration())
			w.pathFor(client, vip, "ebpf", lab.Backends-1)
			streams.check()
			w.option("tcp", at, "sluice-path", "ovn")
			w.pathFor(client, vip, "ovn", lab.Backends-1)
			w.nb("--wait=hv", "sync")
			streams.check()
			theirs := w.streams(client.name, vip, 8)
			w.option("tcp", at, "sluice-path", "auto")
			w.pathFor(client, vip, "ebpf", lab.Backends-1)
			w.nb("--wait=hv", "sync")
			streams.check()
			theirs.check()
		})
	}
}

// configured kills a node's sluiced, and starts it with another configuration until the test
// ends. The usual one answers again when the next test begins.
func (w *world) configured(node, text string) {
	w.Helper()
	again := func(text string) {
		w.Helper()
		p, err := w.Process(node, "sluiced")
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			w.Fatal(err)
		}
		w.sluiced(node, text)
	}
	again(text)
	if usual := w.configuration(); text != usual {
		w.Cleanup(func() {
			again(usual)
			ctx := context.WithoutCancel(w.Context())
			if err := w.WaitFor(ctx, node+" answers", func() error {
				_, err := w.Exec(ctx, node, w.sluicectl(), "drops")
				return err
			}); err != nil {
				w.Error(err)
			}
		})
	}
}

// Without a Northbound session what VMs send is balanced by what Southbound has of load
// balancers, where ACLs that nobody knows are not to be minded.
func TestWithoutNorthbound(t *testing.T) {
	w := shared(t)
	vip, client := netip.MustParseAddr("fd00:99::25"), vms[1]
	at := w.webOnSwitches(vip)
	southbound := func(more ...string) string {
		return strings.ReplaceAll(w.configuration(more...), "  nb: ${OVN_NB_DB}\n", "")
	}
	w.configured(client.node, southbound())
	w.eventually("OVN balances, since ACLs are not known", func() error {
		m, err := w.vm(client.node, client.name)
		if err == nil && (m.Path != "ovn" || m.Reason != reason.ACLUnknown) {
			err = fmt.Errorf("%+v", m)
		}
		return err
	})
	w.configured(client.node, southbound("  aclUnknown: ebpf\n"))
	w.pathFor(client, vip, "ebpf", lab.Backends)
	before := w.onTaps(client.node, vip)
	w.eventually("eBPF answers", func() error {
		_, _, err := w.ask(client.name, "tcp", vip)
		if err == nil && w.onTaps(client.node, vip) == before {
			err = errors.New("OVN did")
		}
		return err
	})
	w.nb("--may-exist", "lb-add", "lb tcp "+at, at, strings.Join(endpoints(vip, backend.HTTPPort)[1:], ","), "tcp")
	w.pathFor(client, vip, "ebpf", lab.Backends-1)
}

// With loadBalancing.clients false nothing is left on taps, and OVN balances; when it is true
// again eBPF does.
func TestVMsOff(t *testing.T) {
	w := shared(t)
	vip, client := netip.MustParseAddr("fd00:99::24"), vms[1]
	w.webOnSwitches(vip)
	w.configured(client.node, w.configuration("  clients: false\n"))
	pins := owned.ClientPins(w.node(client.node).BPFFS)
	w.eventually("nothing is left", func() error {
		if _, err := os.Stat(pins); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", pins, err)
		}
		return nil
	})
	for range 5 {
		if _, _, err := w.ask(client.name, "tcp", vip); err != nil {
			t.Errorf("by OVN: %v", err)
		}
	}
	w.configured(client.node, w.configuration())
	w.pathFor(client, vip, "ebpf", lab.Backends)
	w.eventually("eBPF answers", func() error {
		_, _, err := w.ask(client.name, "tcp", vip)
		if err == nil && w.onTaps(client.node, vip) == 0 {
			err = errors.New("OVN did")
		}
		return err
	})
}

// What is not a connection works for VMs, too: ping, fragments, ICMP errors; and a
// VM that is a backend itself is answered.
func TestVMsBesides(t *testing.T) {
	w := shared(t)
	for _, vip := range []netip.Addr{netip.MustParseAddr("10.10.0.102"), netip.MustParseAddr("fd00:99::23")} {
		at := w.webOnSwitches(vip)
		const closed = 7999
		w.onSwitches("udp", map[string][]string{intent.FormatEndpoint(vip, vipUDP): endpoints(vip, backend.UDPPort), intent.FormatEndpoint(vip, closed): endpoints(vip, closed)})
		for _, client := range vms {
			out, err := w.Exec(w.Context(), client.name, "ping", "-n", "-c", "5", "-i", "0.2", "-W", "3", vip.String())
			if err != nil || !strings.Contains(out, " 0% packet loss") {
				t.Errorf("%s: ping %s: %v\n%s", client.name, vip, err, out)
			}
			w.eventually("a datagram in fragments is answered", func() error {
				out, err := w.Exec(w.Context(), client.name, "sh", "-c", "head -c 4000 /dev/zero | tr '\\0' x | "+socat(vip, vipUDP, "-t1"))
				if err != nil || len(out) != 4000 {
					return fmt.Errorf("%d bytes (%w)", len(out), err)
				}
				return nil
			})
			w.eventually("a closed port is known as such", func() error {
				out, err := w.Exec(w.Context(), client.name, "sh", "-c", "(echo hello; sleep 1) | "+socat(vip, closed, "-t1")+" 2>&1 || true")
				if err != nil || !strings.Contains(out, "Connection refused") {
					return fmt.Errorf("%q (%w)", out, err)
				}
				return nil
			})
			name, from, err := w.ask(client.name, "tcp", vip)
			if err != nil {
				t.Fatal(err)
			}
			want := endpoints(vip, backend.HTTPPort)[name[len(name)-1]-'1']
			out, err = w.Exec(w.Context(), client.node, w.sluicectl(), "-o", "json", "lb", "explain", "--switch", lab.SwitchName("red", client.network), "tcp", from.String(), at)
			var e status.VIPExplanation
			if err = errors.Join(err, json.Unmarshal([]byte(out), &e)); err != nil || e.Backend == nil || intent.FormatEndpoint(e.Backend.Addr, e.Backend.Port) != want {
				t.Errorf("'lb explain' says %s of what %s answered (%v)", out, name, err)
			}
		}
		seen := map[string]int{}
		for range 30 {
			name, _, err := w.ask("be1", "tcp", vip)
			if err != nil {
				t.Fatal(err)
			}
			seen[name]++
		}
		if len(seen) < 3 {
			t.Errorf("be1 was answered by %v", seen)
		}
	}
}
