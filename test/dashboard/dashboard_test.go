package dashboard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/lab/labtest"
	"github.com/ovn-sluice/sluice/test/programs"
)

const (
	dashboard = "../../deploy/grafana/sluice.json"
	rules     = "../../deploy/prometheus/sluice.rules.yaml"

	// prober scrapes: a node from which all chassis can be reached.
	prober = "rr"
	api    = "127.0.0.1:9090"
)

// bin holds the programs under test.
var bin string

func TestMain(m *testing.M) {
	os.Exit(labtest.RunPrograms(m, &bin, func(dir string) error { return programs.LinkInto(dir, "sluiced", "sluicectl", "sluice-lab") }))
}

// Each query of each panel gives data, and no rule for Prometheus fails.
func TestDashboard(t *testing.T) {
	w := up(t)
	w.prometheus()
	list := queries(t)
	missing := slices.Clone(list)
	labtest.Eventually(t, w.Lab, "each query gives data", func() error {
		if err := w.traffic(); err != nil {
			return err
		}
		var left []string
		for _, q := range missing {
			got, err := w.samples(strings.NewReplacer("$instance", ".*", "$__rate_interval", "30s").Replace(q))
			if err != nil {
				return fmt.Errorf("%s: %w", q, err)
			}
			if len(got) == 0 { // a quantile without observations is NaN, and shows that the query is right
				left = append(left, q)
			}
		}
		if missing = left; len(left) > 0 {
			return fmt.Errorf("of %d queries %d give nothing:\n%s", len(list), len(left), strings.Join(left, "\n"))
		}
		return nil
	})
	t.Logf("%d queries give data", len(list))
	w.flows()
	w.rulesWork()
}

// queries are those of the dashboard as it is delivered.
func queries(t *testing.T) (out []string) {
	t.Helper()
	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, p := range file.Panels {
		for _, q := range p.Targets {
			out = append(out, q.Expr)
		}
	}
	if len(out) < 50 {
		t.Fatalf("%d queries", len(out))
	}
	return out
}

// world is the lab with its Prometheus.
type world struct {
	*testing.T
	*lab.Lab
	client *http.Client
	// hidden: the tenant of announce is not exposed now.
	hidden bool
}

// vips is the load balancer; its backends' servers are the scenario's.
const vip4, vip6 = "10.99.0.1", "[fd00:99::1]"

func up(t *testing.T) *world {
	t.Helper()
	peer := lab.Peer{Name: "p1", VRFs: []lab.PeerVRF{{VNI: 1001, Addrs: []netip.Prefix{netip.MustParsePrefix("10.80.0.11/24")}}}}
	s := lab.EVPN(lab.EVPNParams{Compute: true, Metadata: true, Balancing: true, Peers: []lab.Peer{peer}})
	s.BFD = true
	w := &world{T: t, Lab: labtest.Up(t, s)}
	t.Cleanup(func() {
		if !t.Failed() {
			return
		}
		for _, n := range w.chassis() {
			if p, err := w.Process(n, "sluiced"); err == nil {
				w.Logf("%s: %s", n, p.LogTail(20))
			}
		}
	})
	if _, err := w.StartNova(t.Context(), "a", filepath.Join(bin, "sluice-lab")); err != nil {
		t.Fatal(err)
	}
	for _, n := range w.chassis() {
		w.start(n)
	}
	for i := 1; i <= lab.Backends; i++ {
		if _, err := w.StartBackend(t.Context(), fmt.Sprintf("be%d", i), filepath.Join(bin, "sluice-lab")); err != nil {
			t.Fatal(err)
		}
	}
	w.balancer()
	w.wrong()
	return w
}

// wrong has a tenant ask for a VNI that is none, a neighbour announce a prefix that nobody routes, and
// b1 have a path that takes less than the underlay.
func (w *world) wrong() {
	w.Helper()
	_, err := w.NB(w.Context(), "b", "set", "Logical_Switch_Port", lab.GatewaySwitchPort("blue"), `external_ids:neutron_bgpvpn\:vni=nonsense`)
	if err == nil {
		err = w.PeerAnnounce(w.Context(), "p1", 1001, netip.MustParsePrefix("127.0.0.0/8"))
	}
	if err == nil {
		narrow := fmt.Sprintf(`ip route replace $(ip route get %s | sed -n 's/ src .*//p') mtu 1400`, w.node("a1").VTEP4)
		_, err = w.Exec(w.Context(), "b1", "sh", "-ec", narrow)
	}
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) chassis() (out []string) {
	for _, n := range w.Nodes() {
		if n.Kind == lab.KindChassis {
			out = append(out, n.Name)
		}
	}
	return out
}

func (w *world) node(name string) lab.Node {
	w.Helper()
	n, err := w.Node(name)
	if err != nil {
		w.Fatal(err)
	}
	return n
}

// start runs sluiced on a chassis with all that there are metrics of, and the metadata proxy.
func (w *world) start(name string) {
	w.Helper()
	n, rr := w.node(name), w.node(prober)
	text := "bgp:\n" + lab.Times + fmt.Sprintf("  asn: %d\n  neighbors:\n    - {address: %s, families: [evpn, ipv4], bfd: {enabled: true, minTx: 200ms, minRx: 200ms, multiplier: 10}}\n", lab.FabricAS, rr.VTEP4) +
		"underlay: {announce: {vtep: true}, install: {enabled: true}}\n" +
		lab.NodeConfig + lab.BalancingConfig + "  backendMetrics: true\n" + fmt.Sprintf("http: {listen: \"%s:9476\"}\n", n.VTEP4)
	if strings.HasPrefix(name, "a") {
		section, err := w.MetadataConfig("a", fmt.Sprintf("listen: %q", n.VTEP4.String()+":9477"))
		if err != nil {
			w.Fatal(err)
		}
		text += section
	}
	s := lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: text}
	_, err := w.StartSluiced(w.Context(), name, s)
	if err == nil && strings.HasPrefix(name, "a") {
		_, err = w.StartMetadata(w.Context(), name, s)
	}
	if err == nil {
		err = w.ReflectorBFD(w.Context(), prober, n.VTEP4, true)
	}
	if err == nil { // unicast, too: the tunnel addresses, which the nodes refuse as connected
		_, err = w.Exec(w.Context(), prober, "vtysh", "-c", "configure terminal", "-c", fmt.Sprintf("router bgp %d", lab.FabricAS),
			"-c", "address-family ipv4 unicast", "-c", fmt.Sprintf("neighbor %s activate", n.VTEP4), "-c", fmt.Sprintf("neighbor %s route-reflector-client", n.VTEP4))
	}
	if err != nil {
		w.Fatal(err)
	}
}

// balancer makes a load balancer of red's router and network.
func (w *world) balancer() {
	w.Helper()
	var four, six []string
	for i := 1; i <= lab.Backends; i++ {
		four, six = append(four, fmt.Sprintf("10.10.0.%d:8080", 20+i)), append(six, fmt.Sprintf("[fd00:10::%d]:8080", 20+i))
	}
	for _, args := range [][]string{
		{"lb-add", "web", vip4 + ":80", strings.Join(four, ","), "tcp"}, {"lb-add", "web", vip6 + ":80", strings.Join(six, ","), "tcp"},
		{"lr-lb-add", "red-router", "web"}, {"ls-lb-add", lab.SwitchName("red", "net"), "web"},
	} {
		if _, err := w.NB(w.Context(), "a", args...); err != nil {
			w.Fatal(err)
		}
	}
}

// prometheus scrapes all chassis each second, until the test ends.
func (w *world) prometheus() {
	w.Helper()
	dir := w.TempDir()
	var daemons, proxies []string
	for _, n := range w.chassis() {
		daemons = append(daemons, fmt.Sprintf("%q", w.node(n).VTEP4.String()+":9476"))
		if strings.HasPrefix(n, "a") {
			proxies = append(proxies, fmt.Sprintf("%q", w.node(n).VTEP4.String()+":9477"))
		}
	}
	file, err := filepath.Abs(rules)
	if err != nil {
		w.Fatal(err)
	}
	text := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n"+
		"  - {job_name: sluice, static_configs: [{targets: [%s]}]}\n  - {job_name: sluice-metadata, static_configs: [{targets: [%s]}]}\n",
		file, strings.Join(daemons, ", "), strings.Join(proxies, ", "))
	config := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		w.Fatal(err)
	}
	// Not of the test's context: it ends when its log can still be written.
	cmd, err := w.Command(context.WithoutCancel(w.Context()), prober, "prometheus", "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+api)
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	w.client = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (c net.Conn, err error) {
		return c, errors.Join(err, netns.Named(w.node(prober).Netns).Do(func() error { c, err = net.Dial("tcp", api); return err }))
	}}}
	w.Cleanup(w.client.CloseIdleConnections)
	labtest.Eventually(w.T, w.Lab, "Prometheus has scraped all targets", func() error {
		got, err := w.samples("count(up == 1)")
		if err == nil && (len(got) != 1 || got[0].Value[1] != fmt.Sprint(len(daemons)+len(proxies))) {
			err = fmt.Errorf("targets that are up: %v", got)
		}
		return err
	})
}

// get is the data of an answer of Prometheus.
func (w *world) get(path string, data any) error {
	resp, err := w.client.Get("http://" + api + path)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	answer := struct {
		Error string
		Data  any
	}{Data: data}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("%w: %s", err, text)
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

// sample is the value of one series of an answer.
type sample struct{ Value [2]any }

func (w *world) samples(query string) ([]sample, error) {
	var data struct{ Result []sample }
	err := w.get("/api/v1/query?query="+url.QueryEscape(query), &data)
	return data.Result, err
}

// announce has the routes of a tenant withdrawn, and announced by the next call.
func (w *world) announce() error {
	args := []string{"set", "Logical_Switch_Port", lab.InterfaceSwitchPort("blue", "net"), "external_ids:sluice-expose=false"}
	if w.hidden {
		args = []string{"remove", "Logical_Switch_Port", lab.InterfaceSwitchPort("blue", "net"), "external_ids", "sluice-expose"}
	}
	_, err := w.NB(w.Context(), "a", args...)
	w.hidden = !w.hidden
	return err
}

// traffic is some of each kind.
func (w *world) traffic() error {
	const metadata = "http://169.254.169.254/latest/meta-data/instance-id"
	var errs []error
	for _, one := range [][]string{
		{"a-red1", "ping", "-c1", "-W2", "10.20.0.11"}, {"a-red1", "ping", "-c1", "-W2", "fd00:20::11"},
		{"c-fabric", "curl", "-sS", "--max-time", "3", "http://" + vip4 + "/"}, {"c-fabric", "curl", "-sSg", "--max-time", "3", "http://" + vip6 + "/"},
		{"c-same", "curl", "-sS", "--max-time", "3", "http://" + vip4 + "/"}, {"m-red1", "curl", "-sSf", "--max-time", "3", metadata},
	} {
		if _, err := w.Exec(w.Context(), one[0], one[1:]...); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// flows waits until the traffic shows in the rates.
func (w *world) flows() {
	w.Helper()
	for _, m := range []string{"sluice_announce_delay_seconds_count", "sluice_vrf_packets_total", "sluice_vip_packets_total", `sluice_metadata_requests_total{outcome="answered"}`} {
		labtest.Eventually(w.T, w.Lab, m+" grows", func() error {
			if err := errors.Join(w.announce(), w.traffic()); err != nil {
				return err
			}
			got, err := w.samples("sum(rate(" + m + "[30s])) > 0")
			if err == nil && len(got) == 0 {
				err = errors.New("its rate is 0")
			}
			return err
		})
	}
}

// rulesWork waits until each rule was evaluated, without an error.
func (w *world) rulesWork() {
	w.Helper()
	labtest.Eventually(w.T, w.Lab, "each rule works", func() error {
		var data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError string }
			}
		}
		if err := w.get("/api/v1/rules", &data); err != nil {
			return err
		}
		n := 0
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if n++; r.Health != "ok" {
					return fmt.Errorf("%s: %s %s", r.Name, r.Health, r.LastError)
				}
			}
		}
		if n == 0 {
			return errors.New("no rules")
		}
		return nil
	})
}
