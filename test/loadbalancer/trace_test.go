package loadbalancer_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/backend"
)

// sluicectl trace has the programs of a tap decide on a packet: as they decide on those of
// the VM itself.
func TestTraceOfAVM(t *testing.T) {
	w := shared(t)
	m := vms[0]
	trace := func(args ...any) (out status.Trace, err error) {
		argv := []string{w.sluicectl(), "-o", "json", "trace", "--port", m.name, "--proto", "tcp"}
		for _, a := range args {
			argv = append(argv, fmt.Sprint(a))
		}
		text, err := w.Exec(w.Context(), m.node, argv...)
		if err == nil {
			err = json.Unmarshal([]byte(text), &out)
		}
		return out, err
	}
	for i, vip := range []netip.Addr{netip.MustParseAddr("10.99.0.28"), netip.MustParseAddr("fd00:99::28")} {
		w.webOnSwitches(vip)
		before := w.onTaps(m.node, vip)
		for range 10 {
			name, from, err := w.ask(m.name, "tcp", vip)
			if err != nil {
				t.Fatal(err)
			}
			got, err := trace("--sport", from.Port(), from.Addr(), vip)
			at := endpoints(vip, backend.HTTPPort)[name[len(name)-1]-'1']
			if err != nil || got.Verdict != status.OnTap || got.Becomes != at {
				t.Errorf("a packet from %s, which %s answered, is %+v (%v)", from, name, got, err)
			}
			end := netip.MustParseAddrPort(at)
			got, err = trace("--to-vm", "--sport", end.Port(), "--dport", from.Port(), end.Addr(), from.Addr())
			if want := intent.FormatEndpoint(vip, vipHTTP); err != nil || got.Verdict != status.OnTap || got.Becomes != want {
				t.Errorf("the answer of %s is %+v (%v), want one from %s", end, got, err, want)
			}
		}
		if n := w.onTaps(m.node, vip) - before; n > 10 {
			t.Errorf("%d flows are known of 10", n)
		}
		got, err := trace("--dport", 81, m.addresses[i], vip)
		if err != nil || got.Verdict != status.OnTap || got.Becomes != "" {
			t.Errorf("a packet to no VIP is %+v (%v)", got, err)
		}
	}
	if _, err := w.Exec(w.Context(), m.node, w.sluicectl(), "trace", "--port", "nobody", "10.0.0.1", "10.0.0.2"); err == nil {
		t.Error("a VM that is not here has a trace")
	}
}
