package loadbalancer_test

import (
	"fmt"
	"net/netip"
	"testing"
)

// A VM that moves to another node while it runs keeps its connections: that node knows
// none of them, and has the tables that all have.
func TestVMMigrates(t *testing.T) {
	w := shared(t)
	c := vms[1]
	var all []*streams
	vips := []netip.Addr{netip.MustParseAddr("10.99.0.29"), netip.MustParseAddr("fd00:99::29")}
	for _, vip := range vips {
		w.webOnSwitches(vip)
		all = append(all, w.streams(c.name, vip, 15))
	}
	home := c.node
	for _, to := range []string{"a2", home} {
		balances := func() error {
			w.eventually(to+" balances for "+c.name, func() error {
				m, err := w.vm(to, c.name)
				if err == nil && (m.Path != "ebpf" || m.State != "ok") {
					err = fmt.Errorf("%+v", m)
				}
				return err
			})
			return nil
		}
		if err := w.MigrateVM(w.Context(), c.name, to, balances); err != nil {
			t.Fatal(err)
		}
		for i, vip := range vips {
			all[i].check()
			before := w.onTaps(to, vip)
			if _, _, err := w.ask(c.name, "tcp", vip); err != nil {
				t.Error(err)
			}
			if w.onTaps(to, vip) == before {
				t.Errorf("%s does not know a new connection to %s", to, vip)
			}
		}
	}
}
