package metadata_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/netns"
)

// With the proxy gone for good, a namespace that the operator has left answers after
// the stale time, and no longer once the proxy is back. Sluice leaves it alone.
func TestOperatorsNamespaceWhenTheProxyIsGone(t *testing.T) {
	shared(t).operatorTakesOver("m-red1", "red")
}

func (w *world) operatorTakesOver(vm, tenant string) {
	w.Helper()
	node := w.vm(vm).Chassis
	remove := w.operatorNamespace(node, tenant, http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		_, _ = rw.Write([]byte("operator"))
	}))
	defer remove()
	w.ownData(vm)
	proxy := w.process(node, "metadata")
	if err := proxy.Kill(); err != nil {
		w.Fatal(err)
	}
	begin := time.Now()
	for _, f := range families {
		if f == ipv6 {
			w.solicit(vm)
		}
		w.isTold(question{vm: vm, family: f}, "operator")
	}
	w.Logf("the operator's namespace answers both families %d ms after the end of the proxy", time.Since(begin).Milliseconds())
	if err := proxy.Start(); err != nil {
		w.Fatal(err)
	}
	for _, f := range families {
		w.eventually(vm+" is told by "+string(f)+" who it is again", func() error {
			got, err := w.instance(question{vm: vm, family: f, patience: soon()})
			if err == nil && got != instanceOf(vm) {
				err = fmt.Errorf("it is told %q", got)
			}
			return err
		})
	}
	if got := w.namespaces(node); !strings.Contains(strings.Join(got, " "), w.network(tenant).Namespace()) {
		w.Errorf("the operator's namespace is not there: %q", got)
	}
}

// solicit has a VM look for its neighbours anew. The operator's namespace, as
// neutron's agent makes it, does not know the VM and has to find it, and OVN 23.03
// lets no neighbour advertisement of a port with port security pass; but it learns who
// the VM is from what that solicits itself.
func (w *world) solicit(vm string) {
	w.Helper()
	w.exec(vm, "ip", "-6", "neigh", "flush", "all")
}

// networkNamespace makes a network's namespace as neutron's agent does, and returns what
// takes away what is left of it.
func (w *world) networkNamespace(node, tenant string) (remove func()) {
	w.Helper()
	n := w.network(tenant)
	port, mac := n.MetadataPort()
	inside := "echo 0 >/proc/sys/net/ipv6/conf/%[2]s1/accept_dad; ip link set lo up; ip link set %[2]s1 up; " +
		"ip addr add 169.254.169.254/32 dev %[2]s1; ip addr add fe80::a9fe:a9fe/128 dev %[2]s1; "
	for _, a := range n.MetadataAddrs() {
		inside += "ip addr add " + a.String() + " dev %[2]s1; "
	}
	link := "tap" + n.ID[:10]
	// Offloads are off: the userspace datapath reads frames as they are.
	w.sh(node, fmt.Sprintf("ip netns add %[1]s; ip link add %[2]s0 type veth peer name %[2]s1 address %[3]s netns %[1]s; "+
		"echo 1 >/proc/sys/net/ipv6/conf/%[2]s0/disable_ipv6; ethtool -K %[2]s0 tx off tso off gso off >/dev/null; ip link set %[2]s0 up; "+
		"ip netns exec %[1]s sh -euc 'ethtool -K %[2]s1 tx off tso off gso off >/dev/null; "+inside+"'; "+
		"ovs-vsctl add-port br-int %[2]s0 -- set Interface %[2]s0 external_ids:iface-id=%[4]s", n.Namespace(), link, mac, port))
	return func() {
		w.sh(node, fmt.Sprintf("ovs-vsctl --if-exists del-port br-int %[2]s0; ip link del %[2]s0 2>/dev/null || true; ip netns del %[1]s 2>/dev/null || true", n.Namespace(), link))
	}
}

// operatorNamespace is one with a server in it. What it returns takes it away.
func (w *world) operatorNamespace(node, tenant string, handler http.Handler) (remove func()) {
	w.Helper()
	n := w.network(tenant)
	link := "tap" + n.ID[:10]
	clear := w.networkNamespace(node, tenant)
	space := netns.At(fmt.Sprintf("/proc/%d/root/run/netns/%s", w.process(node, "controller").Pid(), n.Namespace()))
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: handler}
	done := make(chan struct{}, len(families))
	var listeners []net.Listener
	if err := space.Do(func() error {
		l, err := net.InterfaceByName(link + "1")
		if err != nil {
			return err
		}
		for _, a := range []string{at4.String() + ":80", fmt.Sprintf("[%s%%%d]:80", at6, l.Index)} {
			l, err := net.Listen("tcp", a)
			if err != nil {
				return err
			}
			listeners = append(listeners, l)
		}
		return nil
	}); err != nil {
		w.Fatal(err)
	}
	for _, l := range listeners {
		go func() {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				w.Errorf("the operator's server: %v", err)
			}
			done <- struct{}{}
		}()
	}
	return func() {
		server.Close()
		for range listeners {
			<-done
		}
		clear()
	}
}

// namespaces are those of a node, in its own /run/netns.
func (w *world) namespaces(node string) []string {
	w.Helper()
	var out []string
	for line := range strings.Lines(w.exec(node, "ip", "netns")) {
		out = append(out, strings.Fields(line)[0])
	}
	return out
}
