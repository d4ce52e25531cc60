package bpf_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	sluiceebpf "github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// What TestRestartWithRightsOfUnit tells the process that it starts.
const (
	rightsDir   = "SLUICE_TEST_RIGHTS_DIR"
	rightsIndex = "SLUICE_TEST_RIGHTS_IFINDEX"
	rightsHook  = "SLUICE_TEST_RIGHTS_HOOK"
	rightsMTU   = "SLUICE_TEST_RIGHTS_MTU"
)

// forMetadata makes and enters network namespaces; the programs of the fabric need it not, also
// over pins with VIPs.
const forMetadata = "CAP_SYS_ADMIN"

// unitRights are the capabilities that the systemd unit leaves, as setpriv takes them, but
// for the one that metadata alone needs.
func unitRights(t *testing.T) string {
	t.Helper()
	unit, err := os.ReadFile("../../deploy/systemd/sluiced.service")
	if err != nil {
		t.Fatal(err)
	}
	set := "-all"
	for line := range strings.Lines(string(unit)) {
		if names, ok := strings.CutPrefix(strings.TrimSpace(line), "CapabilityBoundingSet="); ok {
			for _, name := range strings.Fields(names) {
				if name == forMetadata {
					continue
				}
				set += ",+" + strings.ToLower(strings.TrimPrefix(name, "CAP_"))
			}
		}
	}
	if set == "-all" {
		t.Fatal("the unit has no CapabilityBoundingSet")
	}
	return set
}

// A daemon with the rights of the systemd unit starts, starts again over pins with VIPs, and then
// leaves the program alone that runs; other constants replace it in place.
func TestRestartWithRightsOfUnit(t *testing.T) {
	if dir := os.Getenv(rightsDir); dir != "" {
		startWithRights(t, dir)
		return
	}
	rights := unitRights(t)
	for _, hook := range []sluiceebpf.Hook{sluiceebpf.HookTCX, sluiceebpf.HookClsact} {
		t.Run(hook.String(), func(t *testing.T) {
			ns, index := namespace(t)
			dir := bpffs(t)
			start := func(mtu string, vips int) {
				c := exec.Command("setpriv", "--bounding-set", rights, "--inh-caps", rights, os.Args[0], "-test.run=^TestRestartWithRightsOfUnit$", "-test.v")
				c.Env = append(os.Environ(), rightsDir+"="+dir, fmt.Sprintf("%s=%d", rightsIndex, index), rightsHook+"="+strconv.Itoa(int(hook)), rightsMTU+"="+mtu)
				var out []byte
				err := ns.Do(func() (err error) {
					out, err = c.CombinedOutput()
					return err
				})
				if err != nil || !strings.Contains(string(out), fmt.Sprintf("attached with rights of the unit, over %d VIPs", vips)) {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			start("1500", 0)
			first := programOf(t, dir)
			start("1500", len(worldVIPs()))
			if again := programOf(t, dir); again != first {
				t.Errorf("a restart replaced program %d by %d", first, again)
			}
			start("9000", len(worldVIPs()))
			if now := programOf(t, dir); now == first {
				t.Error("another constant did not replace the program")
			}
		})
	}
}

func startWithRights(t *testing.T, dir string) {
	index, err := strconv.Atoi(os.Getenv(rightsIndex))
	hook, errHook := strconv.Atoi(os.Getenv(rightsHook))
	mtu, errMTU := strconv.Atoi(os.Getenv(rightsMTU))
	if err := errors.Join(err, errHook, errMTU); err != nil {
		t.Fatal(err)
	}
	n := node()
	n.UnderlayMTU = uint16(mtu)
	// Not load: it would hand on the programs, with maps that it empties.
	d, err := sluiceebpf.Load(sluiceebpf.Config{Dir: dir, Node: n, Hook: sluiceebpf.Hook(hook), Limits: fewRows, Bridges: bridges{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for range 2 {
		if err := d.Attach(sluiceebpf.OverlayIn, index); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := d.VIPs().List(t.Context())
	if err != nil || len(kept) != 0 && len(kept) != len(worldVIPs()) {
		t.Fatalf("%d VIPs of the start before, %v", len(kept), err)
	}
	if len(kept) == 0 {
		fillWithVIPs(t, d)
	}
	for k, v := range worldVIPs() {
		if had, ok := kept[k]; ok && had != v {
			t.Errorf("%v is %+v, was %+v", k, had, v)
		}
	}
	t.Logf("attached with rights of the unit, over %d VIPs", len(kept))
}

func fillWithVIPs(t *testing.T, d *sluiceebpf.Dataplane) {
	t.Helper()
	apply(t, d.VRFs(), map[intent.VNI]intent.VRF{red: {VNI: red, Index: 1}})
	apply(t, d.Gateways(), map[intent.GatewayKey]intent.Gateway{gw: gateways()[gw]})
	apply(t, d.VIPs(), worldVIPs())
}
