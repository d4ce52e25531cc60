package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
	"github.com/ovn-sluice/sluice/test/openstack"
	"github.com/ovn-sluice/sluice/test/programs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a database, two replicas, and what has to be there.
type world struct {
	*testing.T
	database *ovsdbtest.Server
	replicas [2]*replica
	*model
	history []string
	// names counts what was given a name of its own, which starts with prefix.
	names  int
	prefix string
}

// replica is a sluice-controller, behind a proxy to the database if that is no cluster.
type replica struct {
	*openstack.Controller
	endpoints    string
	proxy        *ovsdbtest.Proxy
	program, dir string
	running      atomic.Bool
}

// The networks. N2 has two routers, N4 none, and out is outside of the cloud.
var networks = map[string][]string{
	"N1": {"10.0.1.0/24", "fd00:1::/64"}, "N2": {"10.0.2.0/24"}, "N3": {"10.0.3.0/24"}, "N4": {"10.0.4.0/24"}, "out": {"192.0.2.0/24"},
}

func newWorld(t *testing.T) *world { return newWorldOf(t, schema.Northbound) }

// newWorldOf is one with a schema.
func newWorldOf(t *testing.T, raw []byte) *world {
	t.Helper()
	database := ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})
	return newWorldAt(t, database, func() (string, *ovsdbtest.Proxy) {
		p := ovsdbtest.NewProxy(t, database.Endpoint())
		return p.Endpoint(), p
	})
}

// newWorldAt is one of a database that replicas reach as way says, by a proxy or not.
func newWorldAt(t *testing.T, database *ovsdbtest.Server, way func() (endpoints string, proxy *ovsdbtest.Proxy)) *world {
	t.Helper()
	w := &world{T: t, database: database,
		model: &model{Networks: map[string]*network{}, Routers: map[string][]string{"R1": {}, "R2": {}}, Balancers: map[string]*balancer{}, Foreign: map[string][]string{}}}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what happened:\n%s", strings.Join(w.history, "\n"))
		}
	})
	for name, prefixes := range networks {
		n := &network{Outside: name == "out"}
		w.nbctl("ls-add", name, "--", "set", "Logical_Switch", name, "other_config:subnet="+prefixes[0])
		if len(prefixes) > 1 {
			w.nbctl("set", "Logical_Switch", name, "other_config:ipv6_prefix=\""+strings.TrimSuffix(prefixes[1], "/64")+"\"")
		}
		for _, text := range prefixes {
			n.Prefixes = append(n.Prefixes, netip.MustParsePrefix(text))
		}
		n.ID = w.nbctl("get", "Logical_Switch", name, "_uuid")
		w.Networks[name] = n
	}
	w.nbctl("lr-add", "R1", "--", "lr-add", "R2")
	for _, c := range [][2]string{{"R1", "N1"}, {"R1", "N2"}, {"R1", "out"}, {"R2", "N2"}, {"R2", "N3"}} {
		w.connect(c[0], c[1])
	}
	bin, err := programs.Build("sluice-controller")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "controller")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	for i := range w.replicas {
		r := &replica{program: filepath.Join(bin, "sluice-controller"), dir: dir}
		r.endpoints, r.proxy = way()
		r.Controller = &openstack.Controller{Address: ovsdbtest.FreeAddress(t, "127.0.0.1")}
		w.replicas[i] = r
		w.start(r)
		t.Cleanup(func() { w.end(r) })
	}
	w.readSubnets()
	return w
}

func (w *world) nbctl(args ...string) string {
	w.Helper()
	out, err := exec.CommandContext(w.Context(), "ovn-nbctl", append([]string{"--db=" + w.database.Endpoint()}, args...)...).CombinedOutput()
	if err != nil {
		w.Fatalf("ovn-nbctl %q: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// connect gives a router a port in a network.
func (w *world) connect(router, network string) {
	w.Helper()
	port := router + "-" + network
	args := []string{"lrp-add", router, "lrp-" + port, "02:00:00:00:00:0" + router[1:]}
	for _, p := range w.Networks[network].Prefixes {
		a := p.Addr().Next() // R1 has the first address, R2 the second one
		if router == "R2" {
			a = a.Next()
		}
		args = append(args, netip.PrefixFrom(a, p.Bits()).String())
	}
	args = append(args, strings.Fields(fmt.Sprintf("-- lsp-add %s to-%s -- set Logical_Switch_Port to-%s type=router addresses=router options:router-port=lrp-%s", network, port, port, port))...)
	if w.Networks[network].Outside {
		args = append(args, "--", "set", "Logical_Router_Port", "lrp-"+port, "external_ids:neutron\\:is_ext_gw=True")
	}
	w.nbctl(args...)
	w.Routers[router] = append(w.Routers[router], network)
}

func (w *world) disconnect(router, network string) {
	w.Helper()
	port := router + "-" + network
	w.nbctl("lrp-del", "lrp-"+port, "--", "lsp-del", "to-"+port)
	w.Routers[router] = slices.DeleteFunc(w.Routers[router], func(n string) bool { return n == network })
}

func (w *world) start(r *replica) {
	w.Helper()
	var err error
	if r.Controller, err = openstack.StartController(r.program, r.dir, r.Address, r.endpoints); err != nil {
		w.Fatal(err)
	}
	r.running.Store(true)
	w.until("a replica to answer", func() bool {
		status, _, err := r.ask("GET", lbaas+"/loadbalancers", "")
		return err == nil && status == 200
	})
}

func (w *world) end(r *replica) {
	if r.running.Load() {
		if err := r.Stop(); err != nil {
			w.Errorf("a replica ended: %v", err)
		}
	}
	log := r.Log()
	if strings.Contains(log, "request failed") || strings.Contains(log, "panic") {
		w.Errorf("a replica had an error of its own")
	}
	if w.Failed() {
		w.Logf("log of %s:\n%s", r.Address, log)
	}
}

// kill ends a replica as it is. It is for the proxy's goroutines, too.
func (w *world) kill(r *replica) {
	if err := r.Kill(); err != nil {
		w.Errorf("kill -9: %v", err)
	}
	r.running.Store(false)
}

func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for deadline := time.Now().Add(ovsdbtest.Timeout); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("waited in vain for %s", what)
		}
	}
}

// answer is an object of the API.
type answer map[string]any

func (a answer) text(key string) string { s, _ := a[key].(string); return s }

// list are the objects under a key.
func (a answer) list(key string) (out []answer) {
	list, _ := a[key].([]any)
	for _, v := range list {
		if o, is := v.(map[string]any); is {
			out = append(out, o)
		}
	}
	return out
}

var client = http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: ovsdbtest.Timeout}

// ask sends a request. The error is that no answer came.
func (r *replica) ask(method, path, body string) (status int, out answer, err error) {
	request, err := http.NewRequestWithContext(context.Background(), method, "http://"+r.Address+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	raw, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return 0, nil, err
	}
	_ = json.Unmarshal(raw, &out) // some answers have no body, or a text
	return response.StatusCode, out, nil
}

// get is ask for what has to be there.
func (w *world) get(r *replica, path string) answer {
	w.Helper()
	status, out, err := r.ask("GET", path, "")
	if err != nil || status != 200 {
		w.Fatalf("GET %s: %d %v %v", path, status, out, err)
	}
	return out
}

func (w *world) readSubnets() {
	w.Helper()
	for name, n := range w.Networks {
		for _, p := range n.Prefixes {
			for _, s := range w.get(w.replicas[0], "/v2.0/subnets").list("subnets") {
				if s.text("network_id") == n.ID && s.text("cidr") == p.String() {
					n.Subnets = append(n.Subnets, s.text("id"))
				}
			}
		}
		if len(n.Subnets) != len(n.Prefixes) {
			w.Fatalf("network %s has the subnets %q", name, n.Subnets)
		}
	}
}

// check compares the rows with the model.
func (w *world) check() {
	w.Helper()
	c := w.content()
	if d := difference(c.lines(), w.lines()); d != "" {
		w.Fatalf("after %s:%s", w.history[len(w.history)-1], d)
	}
	if d := c.dangling(); d != "" {
		w.Fatalf("after %s: dangling:\n%s", w.history[len(w.history)-1], d)
	}
}

// settle waits until the replica that acts has made the rows what they have to be.
func (w *world) settle() {
	w.Helper()
	var d string
	for deadline := time.Now().Add(ovsdbtest.Timeout); ; time.Sleep(20 * time.Millisecond) {
		if d = difference(w.content().lines(), w.lines()); d == "" {
			break
		}
		if time.Now().After(deadline) {
			w.Fatalf("after %s nobody has repaired:%s", w.history[len(w.history)-1], d)
		}
	}
	w.check()
}

// conflicts are those that a replica has counted.
func (r *replica) conflicts() int {
	return r.counter(`sluice_controller_transactions_total{result="conflict"}`)
}

// counter reads one of a replica's metrics.
func (r *replica) counter(name string) int {
	response, err := client.Get("http://" + r.Address + "/metrics")
	if err != nil {
		return 0
	}
	raw, err := io.ReadAll(response.Body)
	if errors.Join(err, response.Body.Close()) != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(raw), "\n"+name+" ")
	value, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.Atoi(value)
	return n
}
