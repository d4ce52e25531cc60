package metadata_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nightly"
)

// networks is how many steered networks a chassis has: those of the goal at night.
func networks() int {
	if nightly.On() {
		return 500
	}
	return 20
}

// Many steered networks need one process and one namespace, and each VM is told its
// own data, though all have one address.
func TestManyNetworks(t *testing.T) {
	w := own(t, lab.Metadata(lab.MetadataParams{OneChassis: true, Networks: networks(), KernelDatapath: plainParams.KernelDatapath, DirectPlug: plainParams.DirectPlug}))
	var all []string
	for _, vm := range w.Scenario().Clouds[0].VMs {
		all = append(all, vm.Name)
	}
	begin := time.Now()
	w.ownData(all...)
	t.Logf("%d networks are answered after %d ms", len(all), time.Since(begin).Milliseconds())
	w.oneOfEach()
	restart("m1", "sluiced")(w)
	begin = time.Now()
	w.ownData(all...)
	t.Logf("again after %d ms", time.Since(begin).Milliseconds())
	restart("m1", "metadata")(w)
	w.ownData(all...)
	w.oneOfEach()
}

func (w *world) oneOfEach() {
	w.Helper()
	if got := w.namespaces("m1"); !slices.Equal(got, []string{"sluice-metadata"}) {
		w.Errorf("namespaces: %q", got)
	}
	pids := w.proxies("m1")
	if len(pids) != 1 {
		w.Fatalf("proxies: %v", pids)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pids[0]))
	if err != nil {
		w.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "Pss:") {
			w.Logf("the proxy's %s", strings.Join(strings.Fields(line), " "))
		}
	}
}

// proxies are the processes "sluiced metadata" in a node's network namespace.
func (w *world) proxies(node string) []int {
	w.Helper()
	n, err := w.Node(node)
	if err != nil {
		w.Fatal(err)
	}
	space, err := os.Stat("/run/netns/" + n.Netns)
	if err != nil {
		w.Fatal(err)
	}
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		w.Fatal(err)
	}
	var out []int
	for _, dir := range dirs {
		line, err := os.ReadFile(dir + "/cmdline")
		words := bytes.Split(line, []byte{0})
		if err != nil || len(words) < 2 || string(words[1]) != "metadata" || filepath.Base(string(words[0])) != "sluiced" {
			continue
		}
		if in, err := os.Stat(dir + "/ns/net"); err != nil || !os.SameFile(in, space) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			w.Fatal(err)
		}
		out = append(out, pid)
	}
	return out
}
