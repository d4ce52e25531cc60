package metadata_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/haproxy"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
)

// A node goes over from neutron-ovn-metadata-agent to Sluice under requests, as
// docs/metadata.md says it: what would be done is shown before, what is the agent's is
// foreign until it is adopted, and no request is refused or ends without its answer.
func TestTakeOverFromAgent(t *testing.T) {
	t.Run("in a namespace", func(t *testing.T) { shared(t).takeOver("m-red2") })
	t.Run("from a tap", func(t *testing.T) { shared(t).takeOver("m-red1") })
}

func (w *world) takeOver(vm string) {
	w.Helper()
	node, space := w.vm(vm).Chassis, w.network("red").Namespace()
	w.clear(node)
	defer func() {
		w.clear(node)
		w.startOn(node, settings[node]...)
		w.ownData(vms...)
	}()
	a := w.agent(vm)
	defer a.remove()
	w.solicit(vm)
	w.ownData(vm)
	var askers []*asker
	for range 2 {
		for _, f := range families {
			askers = append(askers, w.asking(vm, f))
		}
	}
	namespaced := settings[node] != nil
	w.planned(node, space, namespaced)

	var steered cut
	begin := time.Now()
	w.startOn(node, settings[node]...)
	if namespaced {
		w.eventually("the agent's namespace is foreign", func() error { return w.says(node, "foreign", "status") })
	} else {
		w.eventually("the agent is asked no more", func() error { return a.quiet() })
		steered = cut{begin, time.Now()}
	}
	if err := w.process(node, "sluiced").Stop(); err != nil {
		w.Fatal(err)
	}
	w.adopts(node, space, a)
	if err := w.process(node, "sluiced").Start(); err != nil {
		w.Fatal(err)
	}
	if namespaced {
		w.eventually("the proxy listens beside haproxy", func() error { return w.listeners(node, space, 2) })
		w.eventually("all is as it is to be", func() error { return w.says(node, "no difference", "diff") })
		w.planned(node, "", false)
	} else {
		w.eventually("the namespace is not there any more", func() error {
			if got := w.namespaces(node); slices.Contains(got, space) {
				return fmt.Errorf("there are %q", got)
			}
			return nil
		})
	}
	time.Sleep(away)
	a.end()
	time.Sleep(away)
	w.Logf("the agent has answered %d requests", a.answered.Load())
	for _, one := range askers {
		// What is under way while the tap begins to be steered breaks off; on a slow machine
		// a request may still be when the next is made.
		if n := one.end(steered); n > 2 {
			w.Errorf("%s, %s: %d requests broke when the tap began to be steered", vm, one.q.family, n)
		}
	}
	w.isSluices(vm)
	w.clear(node)
	if ports := w.exec(node, "ovs-vsctl", "list-ports", "br-int"); slices.Contains(w.namespaces(node), space) || strings.Contains(ports, w.network("red").ID[:10]) {
		w.Errorf("cleanup leaves %q and %s", w.namespaces(node), ports)
	}
}

// isSluices demands that nobody but Sluice serves a VM.
func (w *world) isSluices(vm string) {
	w.Helper()
	node, space := w.vm(vm).Chassis, w.network("red").Namespace()
	if settings[node] != nil {
		if err := w.listeners(node, space, 1); err != nil {
			w.Error(err)
		}
		if got := w.exec(node, "ip", "netns", "exec", space, "ip", "link", "show", "lo"); !strings.Contains(got, "sluice:metadata:") {
			w.Errorf("it has no mark: %s", got)
		}
	}
	if out := w.exec(node, sluicectl(), "metadata", "explain", instanceOf(vm)); strings.Contains(out, "MISSING") {
		w.Error(out)
	}
	w.ownData(vm)
}

// clear takes all of Sluice away from a node.
func (w *world) clear(node string) {
	w.Helper()
	for _, name := range []string{"sluiced", "metadata"} {
		if err := w.process(node, name).Stop(); err != nil {
			w.Fatal(err)
		}
	}
	w.exec(node, sluicectl(), "cleanup", "--config", w.configOf(node))
	w.sh(node, `rm -f "$OVS_RUNDIR"/sluice/metadata/identities.json`)
}

func (w *world) configOf(node string) string {
	w.Helper()
	n, err := w.Node(node)
	if err != nil {
		w.Fatal(err)
	}
	return filepath.Join(n.Dir, "sluiced.yaml")
}

// says demands a word of what an operator's command tells.
func (w *world) says(node, word string, args ...string) error {
	out, err := w.Exec(background, node, "sh", "-c", sluicectl()+" "+strings.Join(args, " ")+"; true")
	if err == nil && !strings.Contains(out, word) {
		err = fmt.Errorf("%q is not in:\n%s", word, out)
	}
	return err
}

// listeners demands how many sockets listen for requests by IPv4 and by IPv6.
func (w *world) listeners(node, space string, want int) error {
	for _, at := range []string{"-4", "-6"} {
		out, err := w.Exec(background, node, "ip", "netns", "exec", space, "ss", "-Hltn", at, "sport = :80")
		if n := strings.Count(out, "LISTEN"); err != nil || n != want {
			return fmt.Errorf("%d sockets listen (%s), want %d, %w", n, at, want, err)
		}
	}
	return nil
}

// planned runs a dry run, and demands that it names what there is to do and changes nothing.
// foreign is the namespace that is in the way if the network is to have one.
func (w *world) planned(node, foreign string, namespaced bool) {
	w.Helper()
	before := labtest.Still(w, w.Lab, node, w.everything)
	out := w.sh(node, filepath.Join(bin, "sluiced")+" --config "+w.configOf(node)+" --dry-run -o json || test $? = 3")
	if after := w.everything(node); after != before {
		w.Errorf("the dry run changed something: %s", labtest.FirstDifference(before, after))
	}
	var p status.Plan
	if err := json.Unmarshal([]byte(out), &p); err != nil {
		w.Fatalf("%v:\n%s", err, out)
	}
	var got []string
	for _, c := range p.Changes {
		line := c.Action + " " + c.Table + " " + c.Key
		if c.Error != "" {
			line += ": " + c.Error
		}
		got = append(got, line)
	}
	blue := w.network("blue")
	var want []string
	switch {
	case foreign == "":
		if len(got) > 0 {
			w.Errorf("a dry run when all is done: %q", got)
		}
	case namespaced:
		red := "tap" + w.network("red").ID[:10]
		const why = ": foreign; see sluicectl adopt"
		want = []string{"add namespace " + foreign + why, "add device " + red + "0 and " + red + "1" + why, "add port " + red + "0" + why,
			"add namespace " + blue.Namespace(), "add port tap" + blue.ID[:10] + "0", "add metadata-networks " + blue.ID, "add metadata-ports m-blue2"}
	default:
		want = []string{"add attachment tap_in on tapm-red1", "add attachment tap_in on tapm-blue1", "add attachment proxy_in on sluice-md0",
			"add vm 10.30.0.5 of " + w.vm("m-red1").MAC + " on tapm-red1", "add vm IPv6 of " + w.vm("m-blue1").MAC + " on tapm-blue1", "add metadata-ports m-red1"}
	}
	if foreign != "" {
		want = append(want, "add map guests4_v1", "add program tap_in", "add namespace sluice-metadata", "add device sluice-md0 and sluice-md1")
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			w.Errorf("the dry run does not say %q: %q", line, got)
		}
	}
}

// everything is all of metadata's that Sluice could change on a node.
func (w *world) everything(node string) string {
	w.Helper()
	return w.exec(node, "sh", "-c", `
for ns in $(ip netns | cut -d' ' -f1); do echo $ns; ip netns exec $ns ip -d link; ip netns exec $ns ip addr; done
ip -d link | sed -E 's/[a-z_]+_(timer|delay_timer) +[0-9.]+//g; s/bridge_slave state [a-z]+//'; for t in Bridge Port Interface; do ovs-vsctl --columns=_uuid,name,external_ids list $t; done
ovn-sbctl --columns=name,external_ids list Chassis_Private
find $SLUICE_BPFFS* | sort; find $OVS_RUNDIR/sluice -type f ! -name northbound.json -exec sha256sum {} + 2>&1 || true`)
}

// adopts shows what can be adopted, does it, and finds nothing more.
func (w *world) adopts(node, space string, a *agent) {
	w.Helper()
	adopt := func(args ...string) string {
		w.Helper()
		return w.exec(node, append([]string{sluicectl(), "adopt", "--config", w.configOf(node)}, args...)...)
	}
	before, network := labtest.Still(w, w.Lab, node, w.everything), w.network("red").ID
	shown := adopt()
	for _, want := range []string{"would adopt metadata namespace of network " + network, space, "tap" + network[:10] + "0", fmt.Sprintf("haproxy (%d)", a.haproxy.Process.Pid), "nothing was changed"} {
		if !strings.Contains(shown, want) {
			w.Errorf("%q is not in what adopt shows:\n%s", want, shown)
		}
	}
	if after := w.everything(node); after != before {
		w.Errorf("it was only shown, and changed something: %s", labtest.FirstDifference(before, after))
	}
	if out := adopt("--apply", "--network", network); !strings.HasPrefix(out, "adopted metadata namespace of network "+network) {
		w.Errorf("adopt: %s", out)
	}
	if out := adopt(); out != "nothing of another agent is here\n" {
		w.Errorf("when all is adopted: %s", out)
	}
}

// agent stands for neutron-ovn-metadata-agent on a node: the namespace of a network, the
// real haproxy in it, and behind that a server in place of the agent's own, which without
// the agent is not there.
type agent struct {
	*world
	clear    func()
	haproxy  *exec.Cmd
	server   *http.Server
	answered atomic.Int64
	ended    atomic.Bool
}

// agent begins to answer for a machine of red.
func (w *world) agent(vm string) *agent {
	w.Helper()
	n, node := w.network("red"), w.vm(vm).Chassis
	dir, err := os.MkdirTemp("", "sluice-agent-")
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = os.RemoveAll(dir) })
	a := &agent{world: w, clear: w.networkNamespace(node, "red")}
	socket, file := filepath.Join(dir, "metadata_proxy"), filepath.Join(dir, n.ID+".conf")
	l, err := net.Listen("unix", socket)
	if err != nil {
		w.Fatal(err)
	}
	a.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-OVN-Network-ID") != n.ID || r.Header.Get("X-Forwarded-For") == "" {
			rw.WriteHeader(http.StatusBadRequest)
			return
		}
		a.answered.Add(1)
		_, _ = rw.Write([]byte(instanceOf(vm)))
	})}
	go func() { _ = a.server.Serve(l) }()
	if err := os.WriteFile(file, haproxy.Config(n.ID, socket, "tap"+n.ID[:10]+"1"), 0o600); err != nil {
		w.Fatal(err)
	}
	a.haproxy, err = w.Command(background, node, "ip", "netns", "exec", n.Namespace(), "haproxy", "-db", "-f", file)
	if err == nil {
		err = a.haproxy.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	return a
}

// remove takes away all that is left of it.
func (a *agent) remove() {
	a.Helper()
	a.end()
	a.clear()
}

// quiet demands that nobody asks it any more.
func (a *agent) quiet() error {
	before := a.answered.Load()
	time.Sleep(away)
	if n := a.answered.Load() - before; n > 0 {
		return fmt.Errorf("%d requests within %s", n, away)
	}
	return nil
}

// end ends haproxy as an operator does, and then the agent.
func (a *agent) end() {
	a.Helper()
	if a.ended.Swap(true) {
		return
	}
	if err := a.haproxy.Process.Signal(syscall.SIGUSR1); err != nil {
		a.Error(err)
	}
	if err := a.haproxy.Wait(); err != nil {
		a.Logf("haproxy: %v", err)
	}
	_ = a.server.Close()
}
