package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cloud is a database, two replicas, and the client.
type cloud struct {
	*testing.T
	database *ovsdbtest.Server
	client   Client
	replicas [2]*Controller
	calls    int
}

func newCloud(t *testing.T, raw []byte) *cloud {
	c := &cloud{T: t, database: ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})}
	var err error
	if c.client, err = NewClient(t.Context(), "../../tools/openstack.sh"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "sluice-controller")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/sluice-controller").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	for i := range c.replicas {
		c.replicas[i], err = StartController(program, dir, ovsdbtest.FreeAddress(t, "127.0.0.1"), c.database.Endpoint())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := c.replicas[i].Stop(); err != nil {
				t.Errorf("replica %d ended: %v", i, err)
			}
			if t.Failed() {
				t.Logf("log of replica %d:\n%s", i, c.replicas[i].Log())
			}
		})
		c.ready(i)
	}
	return c
}

// networks makes N1 and N2 at router R1.
func (c *cloud) networks() {
	c.Helper()
	c.nbctl("lr-add", "R1")
	for n := 1; n <= 2; n++ {
		c.nbctl(strings.Fields(fmt.Sprintf("ls-add N%d -- lrp-add R1 lrp-%d 02:00:00:00:00:0%d 10.0.%d.1/24 fd00:%d::1/64 -- lsp-add N%d to-%d -- "+
			"set Logical_Switch_Port to-%d type=router addresses=router options:router-port=lrp-%d", n, n, n, n, n, n, n, n, n))...)
	}
}

func (c *cloud) ready(i int) {
	c.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Second}
	for deadline := time.Now().Add(ovsdbtest.Timeout); ; time.Sleep(20 * time.Millisecond) {
		if answer, err := client.Get("http://" + c.replicas[i].Address + "/readyz"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			c.Fatalf("replica %d is not ready", i)
		}
	}
}

func (c *cloud) nbctl(args ...string) string {
	c.Helper()
	out, err := exec.CommandContext(c.Context(), "ovn-nbctl", append([]string{"--no-leader-only", "--db=" + c.database.Endpoint()}, args...)...).CombinedOutput()
	if err != nil {
		c.Fatalf("ovn-nbctl %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// openstack runs the command, at the one replica and the other in turn.
func (c *cloud) openstack(args ...string) (string, error) {
	c.calls++
	return c.client.Run(context.Background(), c.replicas[c.calls%2].Address, args...)
}

func (c *cloud) must(args ...string) string {
	c.Helper()
	out, err := c.openstack(args...)
	if err != nil {
		c.Fatal(err)
	}
	return out
}

// made are the IDs of what the five steps make, and of the subnets that they use.
type made struct {
	Balancer string `json:"lb"`
	Pool     string `json:"pool"`
	Listener string `json:"listener"`
	Member1  string `json:"m1"`
	Member2  string `json:"m2"`
	Subnet1  string `json:"n1"`
	Subnet2  string `json:"n2"`
}

// checkRow compares the row after the five steps with the source design's, in the form of ovn-octavia-provider 8.0.0.
func (c *cloud) checkRow(m made) {
	c.Helper()
	for column, want := range map[string]string{
		"name":                                `"` + m.Balancer + `"`,
		"protocol":                            "tcp",
		"vips":                                `{"10.0.1.10:82"="10.0.1.107:80,10.0.2.107:80"}`,
		"external_ids:enabled":                `"True"`,
		"external_ids:lr_ref":                 "R1",
		"external_ids:ls_refs":                `"{\"N1\": 2, \"N2\": 1}"`,
		"external_ids:neutron\\:vip":          `"10.0.1.10"`,
		"external_ids:listener_" + m.Listener: `"82:pool_` + m.Pool + `"`,
		"external_ids:pool_" + m.Pool: `"member_` + m.Member1 + `_10.0.1.107:80_` + m.Subnet1 +
			`,member_` + m.Member2 + `_10.0.2.107:80_` + m.Subnet2 + `"`,
	} {
		if got := c.nbctl("get", "Load_Balancer", m.Balancer, column); strings.Trim(got, `"`) != strings.Trim(want, `"`) {
			c.Errorf("%s is %s, want %s", column, got, want)
		}
	}
	for _, of := range []string{"ls-lb-list N1", "ls-lb-list N2", "lr-lb-list R1"} {
		if out := c.nbctl(strings.Fields(of)...); !strings.Contains(out, "10.0.1.10:82") {
			c.Errorf("%s: %s", of, out)
		}
	}
}

func (c *cloud) checkNothingLeft() {
	c.Helper()
	if out := c.nbctl("--bare", "--columns=name", "list", "Load_Balancer"); out != "" {
		c.Errorf("left is %s", out)
	}
	ports := strings.Fields(c.nbctl("--bare", "--columns=name", "list", "Logical_Switch_Port"))
	if slices.Sort(ports); !slices.Equal(ports, []string{"to-1", "to-2"}) {
		c.Errorf("ports %q", ports)
	}
}

// The five steps of the source design by the real command, each at the other replica than the
// one before.
func TestFiveSteps(t *testing.T) {
	c := newCloud(t, schema.Northbound)
	c.networks()
	value := []string{"-f", "value", "-c", "id"}
	id := c.must(append([]string{"loadbalancer", "create", "--name", "lb1", "--vip-subnet-id", "N1-4", "--vip-address", "10.0.1.10", "--provider", "ovn", "--wait"}, value...)...)
	pool := c.must(append([]string{"loadbalancer", "pool", "create", "--name", "p1", "--loadbalancer", "lb1", "--protocol", "TCP", "--lb-algorithm", "SOURCE_IP_PORT", "--wait"}, value...)...)
	m1 := c.must(append([]string{"loadbalancer", "member", "create", "--address", "10.0.1.107", "--subnet-id", "N1-4", "--protocol-port", "80", "--wait", "p1"}, value...)...)
	m2 := c.must(append([]string{"loadbalancer", "member", "create", "--address", "10.0.2.107", "--subnet-id", "N2-4", "--protocol-port", "80", "--wait", "p1"}, value...)...)
	listener := c.must(append([]string{"loadbalancer", "listener", "create", "--name", "l1", "--protocol", "TCP", "--protocol-port", "82", "--default-pool", "p1", "--wait", "lb1"}, value...)...)
	n1, n2 := c.must("subnet", "list", "--name", "N1-4", "-f", "value", "-c", "ID"), c.must("subnet", "list", "--name", "N2-4", "-f", "value", "-c", "ID")
	c.checkRow(made{Balancer: id, Pool: pool, Listener: listener, Member1: m1, Member2: m2, Subnet1: n1, Subnet2: n2})
	for i := range 2 {
		if out := c.must("loadbalancer", "list", "-f", "value", "-c", "id", "-c", "name", "-c", "provisioning_status", "-c", "operating_status"); out != id+" lb1 ACTIVE ONLINE" {
			t.Errorf("replica %d lists %s", i, out)
		}
	}
	out, err := c.openstack("loadbalancer", "delete", "lb1")
	if err == nil || !strings.Contains(out, "Validation failure: Cannot delete Load Balancer "+id+" - it has children (HTTP 400)") {
		t.Errorf("delete with children: %v %s", err, out)
	}
	c.must("loadbalancer", "delete", "--cascade", "--wait", "lb1")
	c.checkNothingLeft()
}

// The same by openstacksdk, with what it finds and changes in between.
func TestSDK(t *testing.T) {
	c := newCloud(t, schema.Northbound)
	c.networks()
	var m made
	if err := json.Unmarshal([]byte(c.story("make")), &m); err != nil {
		t.Fatal(err)
	}
	c.checkRow(m)
	c.story("end")
	c.checkNothingLeft()
}

// story runs a part of testdata/story.py at the two replicas.
func (c *cloud) story(part string) string {
	c.Helper()
	program, err := os.Open("testdata/story.py")
	if err != nil {
		c.Fatal(err)
	}
	defer func() { _ = program.Close() }()
	out, err := c.client.Python(c.Context(), program, part, "http://"+c.replicas[0].Address, "http://"+c.replicas[1].Address)
	if err != nil {
		c.Fatal(err)
	}
	return out
}
