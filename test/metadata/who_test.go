package metadata_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nova"
)

// Each VM is told its own data, by both families and both forms, though another one
// has its addresses.
func TestOwnData(t *testing.T) {
	w := shared(t)
	for _, vm := range vms {
		for _, f := range families {
			for path, want := range map[string]string{
				"/openstack":                           "2018-08-27\n",
				"/openstack/2018-08-27/meta_data.json": fmt.Sprintf(`"uuid":%q`, instanceOf(vm)),
				"/openstack/latest/network_data.json":  w.vm(vm).MAC,
				"/openstack/latest/vendor_data.json":   `{"cloud":"lab"}`,
				"/latest/user-data":                    string(userData(vm)),
				"/latest/meta-data/local-ipv4":         w.vm(vm).Addr4.String(),
				"/openstack/latest/nothing?x=1":        "could not be found",
			} {
				r, err := w.ask(t.Context(), question{vm: vm, family: f, path: path})
				if err != nil || !strings.Contains(string(r.body), want) {
					t.Errorf("%s, %s %s: %d, %v, %.200s", vm, f, path, r.status, err, r.body)
				}
			}
		}
	}
	w.nova.Requests()
	w.ownData("m-red1")
	for _, r := range w.nova.Requests() {
		vm := w.vm("m-red1")
		got := []string{r.Header.Get("X-Instance-Id"), r.Header.Get("X-Tenant-Id"), r.Header.Get("X-Forwarded-For")}
		address := netip.MustParseAddr(got[2])
		if got[0] != vm.Instance || got[1] != vm.Project || address != vm.Addr4 && !address.IsLinkLocalUnicast() {
			t.Errorf("Nova is told %q", got)
		}
	}
}

// VMs with one address ask at once, from one port: no answer is the other's.
func TestPairs(t *testing.T) {
	w := shared(t)
	w.pairs("m-red1", "m-blue1", 1000)
	w.pairs("m-red2", "m-blue2", 50)
}

// pairs has two VMs with equal addresses ask at the same time.
func (w *world) pairs(a, b string, count int) {
	w.Helper()
	begin := time.Now()
	for i := range count {
		for k, f := range families {
			// A port rests after its connection, and is taken for both families: none twice.
			port := uint16(20000 + 5000*k + i)
			var answers [2]string
			var errs [2]error
			var group sync.WaitGroup
			start := make(chan struct{})
			for k, vm := range []string{a, b} {
				q := question{vm: vm, family: f, from: netip.AddrPortFrom(netip.Addr{}, port)}
				group.Go(func() {
					<-start
					answers[k], errs[k] = w.instance(q)
				})
			}
			close(start)
			group.Wait()
			if err := errors.Join(errs[:]...); err != nil {
				w.Fatalf("pair %d, %s: %v", i, f, err)
			}
			if answers != [2]string{instanceOf(a), instanceOf(b)} {
				w.Fatalf("pair %d, %s: %s and %s are told that they are %q", i, f, a, b, answers)
			}
		}
	}
	w.Logf("%d pairs of %s and %s by both families in %d ms", count, a, b, time.Since(begin).Milliseconds())
}

// Whatever a VM claims of itself, it is told its own data or nothing.
func TestForgedHeaders(t *testing.T) {
	w := shared(t)
	other := w.vm("m-blue1")
	forged := http.Header{
		"X-Instance-Id": {other.Instance}, "X-Tenant-Id": {other.Project}, "X-Instance-Id-Signature": {nova.Sign(lab.NovaSecret, other.Instance)},
		"X-Forwarded-For": {"10.30.0.5, 10.30.0.6"}, "Forwarded": {"for=10.30.0.6"}, "X-Real-Ip": {"10.30.0.6"},
		"X-Ovn-Network-Id": {w.network("blue").ID}, "X-Neutron-Network-Id": {w.network("blue").ID}, "X-Neutron-Router-Id": {"x"},
		"X-Metadata-Provider": {"x"}, "X-Metadata-Provider-Signature": {"x"}, "Host": {"nova"},
		"Connection": {"X-Instance-Id, X-Tenant-Id, X-Instance-Id-Signature"},
	}
	for _, vm := range []string{"m-red1", "m-red2"} {
		for _, f := range families {
			for name, values := range forged {
				for _, h := range []http.Header{{name: values}, {name: append([]string{values[0]}, values...)}} {
					w.ownOrNothing(question{vm: vm, family: f, header: h})
				}
			}
			w.ownOrNothing(question{vm: vm, family: f, header: forged})
			w.ownOrNothing(question{vm: vm, family: f, path: "http://nova/latest/meta-data/instance-id"})
		}
	}
	w.nova.Requests()
	w.ownOrNothing(question{vm: "m-red1", family: ipv4, header: forged})
	for _, r := range w.nova.Requests() {
		for name := range forged {
			if got := r.Header.Values(name); len(got) > 1 || strings.Contains(strings.Join(got, " "), "blue") {
				t.Errorf("Nova is told %s: %q", name, got)
			}
		}
	}
}

// ownOrNothing asks, and fails if the answer is another VM's.
func (w *world) ownOrNothing(q question) {
	w.Helper()
	r, err := w.ask(w.Context(), q)
	if err == nil && r.status == http.StatusOK && string(r.body) != instanceOf(q.vm) {
		w.Errorf("%s, %s, %v: it is told that it is %q", q.vm, q.family, q.header, r.body)
	}
	for _, vm := range vms {
		if vm != q.vm && bytes.Contains(r.body, []byte(instanceOf(vm))) {
			w.Errorf("%s, %s, %v: it reads of %s: %q", q.vm, q.family, q.header, vm, r.body)
		}
	}
}

// From a source that is not the VM's there is no answer, or the VM's own data.
func TestForgedSources(t *testing.T) {
	w := shared(t)
	for _, vm := range []string{"m-red1", "m-red2"} {
		w.forgedSources(vm)
	}
}

// unanswered is how long it is waited for an answer that does not come.
func unanswered() time.Duration { return lab.Patience() / 120 }

func (w *world) forgedSources(vm string) {
	w.Helper()
	// Numbers stand for guests by addresses of these two networks.
	for _, source := range []string{"100.64.0.1", "100.64.0.2", "100.64.0.3", "10.30.0.7", "10.30.0.99", "127.0.0.1"} {
		w.forged(vm, ipv4, source, "32")
	}
	for _, source := range []string{"fd6d:0:0:1::5", "fd6d:0:0:2:f816:3eff:fe00:5", "fd00:30::99", "fe80::1", "fe80::f816:3eff:fe00:7"} {
		w.forged(vm, ipv6, source, "128")
	}
	mac := w.vm(vm).MAC
	w.sh(vm, "ip link set eth0 address fa:16:3e:00:00:99")
	for _, f := range families {
		w.ownOrNothing(question{vm: vm, family: f, patience: unanswered()})
	}
	w.sh(vm, "ip link set eth0 address "+mac)
	w.ownData(vm)
}

func (w *world) forged(vm string, f family, source, length string) {
	w.Helper()
	add := "ip addr add " + source + "/" + length + " dev eth0"
	if f == ipv6 {
		add += " nodad"
	}
	if source != "127.0.0.1" {
		w.sh(vm, add)
		defer w.sh(vm, "ip addr del "+source+"/"+length+" dev eth0")
	}
	q := question{vm: vm, family: f, from: netip.AddrPortFrom(netip.MustParseAddr(source), 0), patience: unanswered()}
	r, err := w.ask(w.Context(), q)
	switch {
	case err == nil && r.status == http.StatusOK && string(r.body) != instanceOf(vm):
		w.Errorf("%s as %s is told that it is %q", vm, source, r.body)
	case errors.Is(err, syscall.ECONNREFUSED):
		w.Errorf("%s as %s is refused", vm, source)
	}
	w.Logf("%s as %s: %d, %v", vm, source, r.status, err)
}
