package loadbalancer_test

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

// A VM of which an ACL may say another thing of the VIP than of a backend is OVN's; the
// connections that it has go on. One on other destinations changes nothing.
func TestVMsACLs(t *testing.T) {
	w := shared(t)
	// Of packets of another sender, which there are none of: so nothing is dropped.
	for vip, matches := range map[string][2]string{
		"10.99.0.21": {`inport == "c-same" && ip4.src == 192.0.2.1 && ip4.dst == 10.99.0.0/16 && tcp`, `inport == "c-same" && ip4.dst == 10.0.0.0/8 && tcp.dst == 25`},
		"fd00:99::21": {`inport == "c-same" && ip6.src == 2001:db8::1 && ip6.dst == fd00:99::/64 && tcp`,
			`inport == "c-same" && ip6.dst == fd00::/8 && tcp.dst == 25`},
	} {
		t.Run(vip, func(t *testing.T) {
			testACL(&world{T: t, Lab: w.Lab}, netip.MustParseAddr(vip), matches[0], matches[1])
		})
	}
}

func testACL(w *world, vip netip.Addr, match, beside string) {
	w.webOnSwitches(vip)
	streams := w.streams("c-same", vip, 8)
	sw := lab.SwitchName("red", "net")
	remove := map[string]func(){}
	for _, m := range []string{match, beside} {
		w.nb("acl-add", sw, "from-lport", "1001", m, "drop")
		remove[m] = sync.OnceFunc(func() {
			if _, err := w.NB(context.Background(), "a", "acl-del", sw, "from-lport", "1001", m); err != nil {
				w.Error(err)
			}
		})
		w.Cleanup(remove[m])
	}
	by := func(path, why string) {
		w.Helper()
		w.eventually("c-same has the path "+path, func() error {
			m, err := w.vm("a2", "c-same")
			if err == nil && (m.Path != path || m.Reason != why || m.State != "ok") {
				err = fmt.Errorf("%+v", m)
			}
			return err
		})
		w.nb("--wait=hv", "sync")
	}
	by("ovn", "acl")
	if m, err := w.vm("a2", "be1"); err != nil || m.Path != "ebpf" {
		w.Errorf("another VM of the switch: %+v (%v)", m, err)
	}
	streams.check()
	before := w.onTaps("a2", vip)
	theirs := w.streams("c-same", vip, 8)
	// OVN's flows are noted, too, by the client's direction alone.
	if n := w.onTaps("a2", vip) - before; n < 8 {
		w.Errorf("%d of 8 flows are noted as OVN's", n)
	}
	remove[match]()
	by("ebpf", "auto")
	streams.check()
	theirs.check()
}
