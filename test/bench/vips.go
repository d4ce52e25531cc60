package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/backend"
	"github.com/ovn-sluice/sluice/test/bench/daemons"
	"github.com/ovn-sluice/sluice/test/lab"
)

// loadBalancing is what a daemon's configuration has besides.
const loadBalancing = "loadBalancing:\n  enabled: true\n"

const (
	vipRounds      = 9   // of connections to each target
	vipConnections = 400 // of a round
	vipClients     = 8   // at once
)

// vips measures connections to VIPs from the fabric, against those to backends themselves
// and those that OVN balances; and how long a change of health takes to the table.
func (o options) vips(ctx context.Context, _ io.Writer, rep *report) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Minute)
	defer cancel()
	l, err := lab.Up(ctx, lab.LB(lab.EVPNParams{}), lab.Options{Name: o.labName})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Down()) }()
	if err := daemons.StartAll(ctx, l, o.sluiced, loadBalancing); err != nil {
		return err
	}
	b := vipBench{options: o, lab: l, rep: rep}
	if err := b.connections(ctx); err != nil {
		return err
	}
	return b.health(ctx)
}

type vipBench struct {
	options options
	lab     *lab.Lab
	rep     *report
}

// target is where connections go, in turns. Each has ports of its own: what OVN has balanced
// from a port it goes on to translate for a while, whomever the next connection is to.
type target struct {
	name string
	to   []netip.AddrPort
	port atomic.Uint32 // that of the last connection

	perSecond []float64
	took      []time.Duration
}

func newTarget(name string, number int, to ...netip.AddrPort) *target {
	const first, each = 10_000, 15_000
	t := &target{name: name, to: to}
	t.port.Store(uint32(first + number*each))
	return t
}

// connections compares the three ways to a backend: new connections with one request each.
func (b *vipBench) connections(ctx context.Context) error {
	binary, err := filepath.Abs(filepath.Join(filepath.Dir(b.options.sluiced), "sluice-lab"))
	if err != nil {
		return err
	}
	direct := newTarget("direct", 0)
	var list []string
	for i := 1; i <= lab.Backends; i++ {
		if _, err := b.lab.StartBackend(ctx, fmt.Sprintf("be%d", i), binary); err != nil {
			return err
		}
		at := netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("10.10.0.%d", 20+i)), backend.HTTPPort)
		direct.to, list = append(direct.to, at), append(list, at.String())
	}
	targets := []*target{direct}
	for i, path := range []string{"auto", "ovn"} {
		at := netip.AddrPortFrom(netip.MustParseAddr(fmt.Sprintf("10.99.0.%d", 1+i)), 80)
		for _, args := range [][]string{{"lb-add", path, at.String(), strings.Join(list, ","), "tcp"}, {"set", "Load_Balancer", path, "options:sluice-path=" + path}, {"lr-lb-add", "red-router", path}} {
			if _, err := b.lab.NB(ctx, "a", args...); err != nil {
				return err
			}
		}
		targets = append(targets, newTarget(path, len(targets), at))
	}
	client, err := b.lab.Node("c-fabric")
	if err != nil {
		return err
	}
	space := netns.Named(client.Netns)
	for _, t := range targets {
		for _, to := range t.to {
			if err := b.lab.WaitFor(ctx, to.String()+" answers", func() error { return t.request(ctx, space, to) }); err != nil {
				return err
			}
		}
	}
	for range vipRounds {
		for _, t := range targets {
			if err := t.round(ctx, space); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
		}
	}
	live, ovn := targets[1], targets[2]
	b.rep.add("VIP from the fabric, connections/s", middle(live.perSecond)/middle(direct.perSecond), "x direct", atLeast(0.95))
	b.rep.note(fmt.Sprintf("%.0f/s against %.0f/s, medians of %d rounds of %d", middle(live.perSecond), middle(direct.perSecond), vipRounds, vipConnections))
	b.rep.add("VIP from the fabric, connections/s", middle(live.perSecond)/middle(ovn.perSecond), "x ct_lb", atLeast(1))
	b.rep.note(fmt.Sprintf("%.0f/s of OVN", middle(ovn.perSecond)))
	b.rep.add("VIP from the fabric, request p50", middle(live.took)/middle(direct.took), "x direct", noGoal)
	b.rep.note(fmt.Sprintf("%.2f ms against %.2f ms, and %.2f ms of OVN", ms(middle(live.took)), ms(middle(direct.took)), ms(middle(ovn.took))))
	return nil
}

func middle[T time.Duration | float64](list []T) float64 {
	list = slices.Sorted(slices.Values(list))
	return float64(list[len(list)/2])
}

func ms(d float64) float64 { return d / float64(time.Millisecond) }

// round has some clients make connections, one after the other.
func (t *target) round(ctx context.Context, space netns.Namespace) error {
	took, errs := make([][]time.Duration, vipClients), make([]error, vipClients)
	var group sync.WaitGroup
	begin := time.Now()
	for c := range vipClients {
		group.Go(func() {
			for i := range vipConnections / vipClients {
				start := time.Now()
				if errs[c] = t.request(ctx, space, t.to[(c+i)%len(t.to)]); errs[c] != nil {
					return
				}
				took[c] = append(took[c], time.Since(start))
			}
		})
	}
	group.Wait()
	t.perSecond = append(t.perSecond, vipConnections/time.Since(begin).Seconds())
	t.took = append(t.took, slices.Concat(took...)...)
	return errors.Join(errs...)
}

// request is one connection with one request.
func (t *target) request(ctx context.Context, space netns.Namespace, to netip.AddrPort) error {
	const patience = 10 * time.Second
	from := &net.TCPAddr{Port: int(t.port.Add(1))}
	var conn net.Conn
	if err := space.Do(func() (err error) {
		conn, err = (&net.Dialer{Timeout: patience, LocalAddr: from}).DialContext(ctx, "tcp", to.String())
		return err
	}); err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+to.String()+"/", nil)
	if err != nil {
		return err
	}
	r.Close = true
	if err := r.Write(conn); err != nil {
		return err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(resp.Body)
	if err = errors.Join(err, resp.Body.Close()); err == nil && (resp.StatusCode != http.StatusOK || !strings.HasPrefix(string(body), "be")) {
		err = fmt.Errorf("status %d, %.100q", resp.StatusCode, body)
	}
	return err
}

// healthVIPs is how many VIPs there are while a backend's health changes.
const healthVIPs = 1000

// health times the change of a Service_Monitor row to the table of the VIP of its backend.
func (b *vipBench) health(ctx context.Context) error {
	if err := b.manyVIPs(ctx); err != nil {
		return err
	}
	gateway, err := b.lab.Node("a1")
	if err != nil {
		return err
	}
	vips, err := ebpf.LoadPinnedMap(filepath.Join(gateway.BPFFS, "vips_v2"), &ebpf.LoadPinOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer vips.Close()
	if err := b.lab.WaitFor(ctx, "all VIPs are in the map", func() error {
		n, key, value := 0, []byte(nil), []byte(nil)
		it := vips.Iterate()
		for it.Next(&key, &value) {
			n++
		}
		if n < healthVIPs {
			return fmt.Errorf("%d of %d: %w", n, healthVIPs, cmp.Or(it.Err(), errors.New("not yet")))
		}
		return nil
	}); err != nil {
		return err
	}
	sb, err := b.lab.OpenDatabase(ctx, "a", "sb")
	if err != nil {
		return err
	}
	defer sb.Close()
	const changes = healthVIPs / 2
	h := healthBench{sb: sb, vips: vips}
	for i, where := range []string{"all of the clouds on this machine", "one node alone"} {
		err := b.alone(i == 1, func() error { return h.changes(ctx, i*changes, changes) })
		if err != nil {
			return err
		}
		slices.Sort(h.took)
		for _, q := range []struct {
			name string
			at   int
			goal goal
		}{{"p50", len(h.took) / 2, noGoal}, {"p99", len(h.took) * 99 / 100, map[bool]goal{true: atMost(50), false: noGoal}[i == 1]}} {
			b.rep.add(fmt.Sprintf("Service_Monitor to table, %d VIPs, %s", healthVIPs, q.name), ms(float64(h.took[q.at])), "ms", q.goal)
			b.rep.note(fmt.Sprintf("%d changes, %s", len(h.took), where))
		}
	}
	return nil
}

// alone does something while nothing but a1's sluiced and cloud A's Southbound database
// works on what changes: the others' processes, which are on machines of their own elsewhere, are
// stopped and go on after it. Without is, they all go on.
func (b *vipBench) alone(is bool, do func() error) (err error) {
	if !is {
		return do()
	}
	list, err := b.lab.Processes()
	if err != nil {
		return err
	}
	for _, p := range list {
		if !p.Running() || p.Name != "northd" && p.Name != "controller" && (p.Name != "sluiced" || p.Node == "a1") {
			continue
		}
		if err := p.Signal(unix.SIGSTOP); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, p.Signal(unix.SIGCONT)) }()
	}
	return do()
}

// healthBench changes rows of Service_Monitor and looks at the map vips of a node.
type healthBench struct {
	sb   *lab.Database
	vips *ebpf.Map
	took []time.Duration
}

// changes times one change for each of n VIPs.
func (h *healthBench) changes(ctx context.Context, first, n int) error {
	h.took = nil
	for i := first; i < first+n; i++ {
		port := 20_000 + i
		var row struct {
			Rows []struct {
				UUID [2]string `json:"_uuid"`
			}
		}
		if err := h.sb.Transact(&row, fmt.Sprintf(`{"op":"select","table":"Service_Monitor","where":[["ip","==","10.10.0.21"],["port","==",%d]],"columns":["_uuid"]}`, port)); err != nil {
			return err
		}
		if len(row.Rows) != 1 {
			return fmt.Errorf("%d rows of Service_Monitor for port %d", len(row.Rows), port)
		}
		key := vipKey(intent.VNI(1001), manyVIP(i))
		before, err := h.vips.LookupBytes(key)
		if err != nil || before == nil {
			return fmt.Errorf("VIP %s: %w", manyVIP(i), cmp.Or(err, ebpf.ErrKeyNotExist))
		}
		begin := time.Now()
		if err := h.sb.Transact(nil, fmt.Sprintf(`{"op":"update","table":"Service_Monitor","where":[["_uuid","==",["uuid",%q]]],"row":{"status":"offline"}}`, row.Rows[0].UUID[1])); err != nil {
			return err
		}
		for now := before; slices.Equal(now[:4], before[:4]); { // struct vip: table
			if ctx.Err() != nil || time.Since(begin) > 30*time.Second {
				return fmt.Errorf("the table of VIP %s never changed: %w", manyVIP(i), ctx.Err())
			}
			time.Sleep(50 * time.Microsecond)
			if now, err = h.vips.LookupBytes(key); err != nil {
				return err
			}
		}
		h.took = append(h.took, time.Since(begin))
	}
	return nil
}

func manyVIP(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 98, byte(i >> 8), byte(i)}), 80)
}

// vipKey is struct vip_key of TCP.
func vipKey(vni intent.VNI, vip netip.AddrPort) []byte {
	a := vip.Addr().As16()
	return append([]byte{byte(vni), byte(vni >> 8), byte(vni >> 16), byte(vni >> 24), byte(vip.Port() >> 8), byte(vip.Port()), 6, 0}, a[:]...)
}

// manyVIPs makes VIPs of two backends each, which are probed on a port of their own; so
// seldom, that OVN changes nothing meanwhile.
func (b *vipBench) manyVIPs(ctx context.Context) error {
	const at = 50 // load balancers of a transaction
	for first := 0; first < healthVIPs; first += at {
		var args []string
		for i := first; i < min(first+at, healthVIPs); i++ {
			name, port := fmt.Sprintf("many%d", i), 20_000+i
			args = append(args, "--", fmt.Sprintf("--id=@check%d", i), "create", "Load_Balancer_Health_Check", fmt.Sprintf("vip=%q", manyVIP(i)),
				"options:interval=100000", "options:timeout=1000", "options:success_count=3", "options:failure_count=30000",
				"--", fmt.Sprintf("--id=@lb%d", i), "create", "Load_Balancer", "name="+name, "protocol=tcp", fmt.Sprintf("vips:%q=%q", manyVIP(i), fmt.Sprintf("10.10.0.21:%d,10.10.0.22:%d", port, port)),
				`ip_port_mappings:10.10.0.21="be1:10.10.0.254"`, `ip_port_mappings:10.10.0.22="be2:10.10.0.254"`, fmt.Sprintf("health_check=@check%d", i),
				"--", "add", "Logical_Router", "red-router", "load_balancer", fmt.Sprintf("@lb%d", i))
		}
		if _, err := b.lab.NB(ctx, "a", args[1:]...); err != nil {
			return err
		}
	}
	return nil
}
