package cloudinit_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/cloudinit"
	"github.com/ovn-sluice/sluice/test/nova"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const userDataSize = 64 << 10

// userData is a document that cloud-init takes, as large as it gets.
func userData() []byte {
	raw := make([]byte, userDataSize)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(raw)
	text := []byte("#cloud-config\nfinal_message: user\n# " + base64.StdEncoding.EncodeToString(raw))
	return append(text[:userDataSize-1], '\n')
}

var instance = nova.Instance{
	ID: "inst-red1", Project: "project-red", Name: "red1", UserData: userData(), MAC: "fa:16:3e:00:00:05", MTU: 1500,
	VendorData: json.RawMessage(`{"cloud-init": "#cloud-config\nfinal_message: vendor"}`), VendorData2: json.RawMessage(`{"cloud-init": "#cloud-config\nfinal_message: more"}`),
}

// wire is a VM's namespace with eth0, and behind it one that answers as the
// metadata addresses of both families.
func wire(t *testing.T) (vm, server string) {
	t.Helper()
	vm, server = fmt.Sprintf("slci%d-vm", os.Getpid()), fmt.Sprintf("slci%d-md", os.Getpid())
	for _, ns := range []string{vm, server} {
		ip(t, "netns add "+ns)
		t.Cleanup(func() { ip(t, "netns del "+ns) })
		sh(t, ns, "echo 0 >/proc/sys/net/ipv6/conf/default/accept_dad; ip link set lo up")
	}
	ip(t, fmt.Sprintf("link add eth0 netns %s address fa:16:3e:00:00:05 type veth peer name md netns %s", vm, server))
	sh(t, server, "ip link set md up; ip addr add 169.254.169.254/16 dev md; ip addr add fe80::a9fe:a9fe/64 dev md nodad")
	sh(t, vm, "ip link set eth0 up")
	n := nova.New(nova.Config{Secret: "x", Instances: []nova.Instance{instance}})
	s := &http.Server{Handler: n.As(instance.ID, instance.Project), ReadHeaderTimeout: time.Minute}
	for _, address := range []string{"169.254.169.254:80", "[fe80::a9fe:a9fe%md]:80"} {
		var l net.Listener
		if err := netns.Named(server).Do(func() (err error) {
			l, err = net.Listen("tcp", address)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { defer close(done); _ = s.Serve(l) }()
		t.Cleanup(func() { s.Close(); <-done })
	}
	return vm, server
}

func ip(t *testing.T, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("ip %s: %v: %s", args, err, out)
	}
}

func sh(t *testing.T, ns, script string) {
	t.Helper()
	if out, err := exec.Command("nsenter", "--net=/run/netns/"+ns, "--", "sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %s: %v: %s", ns, script, err, out)
	}
}

// cloud-init reads all of it, by either family and by both, and leaves the VM that
// it runs on as it was.
func TestBoot(t *testing.T) {
	root, err := cloudinit.Debian(t.Context(), "../../tools/cloudinit.sh", "trixie")
	if err != nil {
		t.Fatal(err)
	}
	version, err := root.Version()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("cloud-init %s", version)
	vm, _ := wire(t)
	for _, c := range []struct{ name, setup, url string }{
		{"IPv6 alone", "ip -4 addr flush dev eth0", "http://[fe80::a9fe:a9fe%25eth0]"},
		{"both", "ip addr add 169.254.0.5/16 dev eth0", ""},
		{"IPv4 alone", "echo 1 >/proc/sys/net/ipv6/conf/eth0/disable_ipv6", "http://169.254.169.254"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sh(t, vm, c.setup)
			before := host(t)
			begin := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			res, err := root.Boot(ctx, "/run/netns/"+vm, cloudinit.Network)
			if err != nil {
				t.Fatalf("%v\n%s", err, res.Log)
			}
			t.Logf("%s from %s in %d ms", res.DataSource, res.URL, time.Since(begin).Milliseconds())
			// cloud-init asks for EC2's documents over IPv4 alone, whatever it has found.
			if problems := res.Problems(); len(problems) > 0 && c.name != "IPv6 alone" {
				t.Errorf("it complains: %q", problems)
			}
			if after := host(t); after != before {
				t.Errorf("the VM was\n%s\nand is\n%s", before, after)
			}
			if res.InstanceID != instance.ID || c.url != "" && res.URL != c.url || !strings.Contains(res.DataSource, "OpenStack") {
				t.Errorf("instance %q from %q, data source %q", res.InstanceID, res.URL, res.DataSource)
			}
			if !bytes.Equal(res.UserData, instance.UserData) {
				t.Errorf("%d bytes of user data, want the %d of the instance", len(res.UserData), len(instance.UserData))
			}
			if !strings.Contains(res.VendorData, "message: vendor") || !strings.Contains(res.VendorData2, "message: more") {
				t.Errorf("vendor data %q and %q", res.VendorData, res.VendorData2)
			}
		})
	}
}

// host is what cloud-init could change of the VM.
func host(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("sh", "-c", `hostname; cat /etc/hostname /etc/hosts /etc/resolv.conf; ls -d /var/lib/cloud /run/cloud-init /etc/cloud 2>&1
		ls /etc/netplan /etc/network /etc/systemd/network /etc/udev/rules.d 2>/dev/null; sha256sum /etc/passwd /etc/shadow; ip -br link; ip -br addr; ip route; findmnt -n -o TARGET,FSTYPE /tmp`).CombinedOutput()
	if len(out) == 0 {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "sluice-cloud-init-*"))
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s%v", out, left)
}
