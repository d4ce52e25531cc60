//go:build guest

package kernelpath

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// TestKept damages the kernel path of a VRF in turn: none of it counts as having
// forwarded, until it is mended.
func TestKept(t *testing.T) {
	s := newSite(t, false, false)
	s.mustApply(s.rows())
	s.handOver()
	fabric, err := strconv.Atoi(strings.TrimSpace(run(t, "node", "ip -o link show sluice-vxlan | cut -d: -f1")))
	if err != nil {
		t.Fatal(err)
	}
	kept := func() (err error) {
		if e := netns.Named("node").Do(func() error { err = s.data.Kept(fabric); return nil }); e != nil {
			t.Fatal(e)
		}
		return err
	}
	// The kernel notes a moment later that a bridge has a carrier.
	keptSoon := func(when string) {
		t.Helper()
		err := kept()
		for end := time.Now().Add(time.Minute); err != nil && time.Now().Before(end); err = kept() {
			time.Sleep(10 * time.Millisecond)
		}
		if err != nil {
			t.Errorf("%s: %v", when, err)
		}
	}
	keptSoon("whole")
	for _, tt := range []struct{ script, want string }{
		{"ip link set br-1001 down", "device br-1001 is down"},
		{"ip link set vrf-1001 down", "device vrf-1001 is down"},
		{"ip link set br-1001 nomaster", "device br-1001 is in no VRF"},
		{"ip route flush table 1001", "table 1001 of vrf-1001 has lost routes"},
		{"ip -6 route flush table 1001", "table 1001 of vrf-1001 has lost routes"},
		{"ip link set vx-1001 down", "is down"},
		{"tc qdisc del dev br-1001 clsact", "has lost program vrf_guard"},
		{"ip link del vx-1001", "is not there|device br-1001 is down"}, // its bridge loses the carrier a moment later
		{"ip link del br-1001", "is not there"},
		{"ip link del vrf-1001", "is in no VRF"},
	} {
		run(t, "node", tt.script)
		if err := kept(); err == nil || errors.Is(err, ebpf.ErrNothingKept) || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
			t.Errorf("%s: %v, want %q", tt.script, err, tt.want)
		}
		s.mustApply(s.rows())
		s.handOver()
		keptSoon("mended after " + tt.script)
	}
	// What the driver removes itself is not missed.
	if err := errors.Join(s.path.Gateways().Delete(t.Context(), keys(s.rows().gateways))...); err != nil {
		t.Fatal(err)
	}
	if err := kept(); err != nil {
		t.Errorf("without the gateway port: %v", err)
	}
}
