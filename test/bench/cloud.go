package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/bench/daemons"
	"github.com/ovn-sluice/sluice/test/lab"
)

// size is how large the cloud of a measurement is.
type size bool

const (
	small size = false
	large size = true
)

// cloudBench is a lab with the daemon on a1 and the bench's neighbour on a2.
// The session is direct: FRR as a route reflector adds tens of milliseconds.
type cloudBench struct {
	options
	lab            *lab.Lab
	rep            *report
	title          string
	tenants, hosts int
	neighbour      *neighbour
	daemon         *lab.Process
}

const daemonNode, neighbourNode = "a1", "a2"

// cloud brings a cloud of one size up and measures the daemon in it.
func (o options) cloud(ctx context.Context, out io.Writer, rep *report, s size) (err error) {
	b := &cloudBench{options: o, rep: rep, tenants: 1, hosts: o.hosts}
	if s == large {
		b.tenants = o.tenants
	}
	b.title = fmt.Sprintf("vrfs=%d hosts=%d", b.tenants, b.tenants*b.hosts)
	begin := time.Now()
	b.lab, err = lab.Up(ctx, lab.EVPN(lab.EVPNParams{ExtraTenants: b.tenants, HostsPerTenant: b.hosts}), lab.Options{Name: o.labName})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.lab.Down()) }()
	fmt.Fprintf(out, "lab with %s is up after %.1f s\n", b.title, time.Since(begin).Seconds())
	if err := b.settle(ctx); err != nil {
		return err
	}
	if err := b.startNeighbour(ctx); err != nil {
		return err
	}
	defer b.neighbour.stop()
	if err := b.start(ctx, s); err != nil {
		return err
	}
	return b.changes(ctx, s)
}

// settle waits until OVN's own processes have done their work, and then holds
// ovn-northd: it would compute the whole cloud again after each timed change, on
// the cores of the daemon, where in a cloud it runs on another machine.
func (b *cloudBench) settle(ctx context.Context) error {
	if _, err := b.lab.NB(ctx, "a", "--wait=hv", "sync"); err != nil {
		return err
	}
	central, err := b.lab.Node("a-central")
	if err != nil {
		return err
	}
	if _, err := b.lab.Exec(ctx, central.Name, "ovs-appctl", "-t", filepath.Join(central.Dir, "northd.ctl"), "pause"); err != nil {
		return err
	}
	ps, err := b.lab.Processes()
	if err != nil {
		return err
	}
	return daemons.Settle(ctx, ps)
}

// start measures the daemon from its start until every host is announced.
func (b *cloudBench) start(ctx context.Context, s size) error {
	local, err := b.lab.Node(neighbourNode)
	if err != nil {
		return err
	}
	binary, err := filepath.Abs(b.sluiced)
	if err != nil {
		return err
	}
	begin := time.Now()
	b.daemon, err = b.lab.StartSluiced(ctx, daemonNode, lab.Sluiced{Binary: binary, Config: fmt.Sprintf(lab.Config, local.VTEP4)})
	if err != nil {
		return err
	}
	at, err := b.neighbour.waitAll(ctx, b.keys())
	if err != nil {
		return errors.Join(err, fmt.Errorf("the daemon's log ends: %s", b.daemon.LogTail(5)))
	}
	b.rep.add("start to all announced "+b.title, at.Sub(begin).Seconds(), "s", noGoal)
	b.rep.note(fmt.Sprintf("%d routes", len(b.neighbour.routes)))
	if s == small {
		return nil
	}
	return b.atRest(ctx)
}

// startNeighbour runs this program as the BGP neighbour.
func (b *cloudBench) startNeighbour(ctx context.Context) error {
	local, err := b.lab.Node(neighbourNode)
	if err != nil {
		return err
	}
	peer, err := b.lab.Node(daemonNode)
	if err != nil {
		return err
	}
	cfg := listenConfig{ASN: lab.FabricAS, Local: local.VTEP4, Peer: peer.VTEP4}
	for i := range b.tenants {
		cfg.VNIs = append(cfg.VNIs, vniOf(i))
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return err
	}
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	cmd, err := b.lab.Command(ctx, neighbourNode, exe, "-listen", string(text))
	if err != nil {
		cancel()
		return err
	}
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return err
	}
	ended := make(chan struct{})
	b.neighbour = &neighbour{routes: map[intent.RouteKey]struct{}{}, events: make(chan event, 1<<17), stop: func() {
		cancel()
		<-ended
	}}
	go func() {
		defer close(ended)
		b.neighbour.read(ctx, pipe)
		_ = cmd.Wait()
	}()
	return nil
}

func vniOf(tenant int) intent.VNI { return intent.VNI(10001 + tenant) }

// keys are the routes of all hosts.
func (b *cloudBench) keys() []intent.RouteKey {
	var out []intent.RouteKey
	for _, c := range b.lab.Scenario().Clouds {
		vnis := map[string]intent.VNI{}
		for _, t := range c.Tenants {
			vnis[t.Name] = intent.VNI(t.VNI)
		}
		for _, vm := range c.VMs {
			if !vm.Phantom {
				continue
			}
			for _, a := range []netip.Addr{vm.Addr4, vm.Addr6} {
				out = append(out, intent.NewHostKey(vnis[vm.Tenant], a))
			}
		}
	}
	return out
}

// atRest measures memory, and the CPU time while nothing changes.
func (b *cloudBench) atRest(ctx context.Context) error {
	// The work of the start ends after the last announcement.
	if err := sleep(ctx, 10*time.Second); err != nil {
		return err
	}
	rss, err := daemons.Resident(b.daemon.Pid())
	if err != nil {
		return err
	}
	b.rep.add("resident memory "+b.title, float64(rss)/(1<<20), "MiB", atMost(250))
	before, err := daemons.Processor([]*lab.Process{b.daemon})
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := sleep(ctx, b.rest); err != nil {
		return err
	}
	after, err := daemons.Processor([]*lab.Process{b.daemon})
	if err != nil {
		return err
	}
	share := 100 * float64(after-before) / float64(time.Since(begin))
	b.rep.add("CPU at rest "+b.title, share, "% of a core", atMost(0.5))
	b.rep.note(fmt.Sprintf("over %s", time.Since(begin).Round(time.Second)))
	return nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// changes times one host's coming and going, from the Southbound transaction to
// the neighbour.
func (b *cloudBench) changes(ctx context.Context, s size) error {
	port, key := "t0001-0", intent.NewHostKey(vniOf(0), netip.MustParseAddr("10.10.0.11"))
	var row struct {
		Rows []struct {
			UUID    [2]string `json:"_uuid"`
			Chassis [2]string `json:"chassis"`
		}
	}
	sb, err := b.lab.OpenDatabase(ctx, "a", "sb")
	if err != nil {
		return err
	}
	defer sb.Close()
	if err := sb.Transact(&row, fmt.Sprintf(`{"op":"select","table":"Port_Binding","where":[["logical_port","==",%q]],"columns":["_uuid","chassis"]}`, port)); err != nil {
		return err
	}
	if len(row.Rows) != 1 {
		return fmt.Errorf("%d rows of Port_Binding for %s", len(row.Rows), port)
	}
	// By _uuid: for any other column the server looks at every row.
	where := fmt.Sprintf(`"table":"Port_Binding","where":[["_uuid","==",["uuid",%q]]]`, row.Rows[0].UUID[1])
	var up, down []time.Duration
	for range b.options.changes {
		for _, come := range []bool{false, true} {
			values := `"chassis":["set",[]],"up":false`
			if come {
				values = fmt.Sprintf(`"chassis":["uuid",%q],"up":true`, row.Rows[0].Chassis[1])
			}
			begin := time.Now()
			if err := sb.Transact(nil, `{"op":"update",`+where+`,"row":{`+values+`}}`); err != nil {
				return err
			}
			at, err := b.neighbour.waitFor(ctx, key, come)
			if err != nil {
				return err
			}
			if come {
				up = append(up, at.Sub(begin))
			} else {
				down = append(down, at.Sub(begin))
			}
			if err := sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
	}
	g := noGoal
	if s == small {
		g = atMost(50)
	}
	b.latency("SB commit to announcement", up, g)
	b.latency("SB commit to withdrawal", down, g)
	return nil
}

func (b *cloudBench) latency(what string, list []time.Duration, p99 goal) {
	slices.Sort(list)
	at := func(q float64) float64 {
		return float64(list[min(len(list)-1, int(q*float64(len(list))))].Microseconds()) / 1000
	}
	b.rep.add(what+" p50 "+b.title, at(0.5), "ms", noGoal)
	b.rep.add(what+" p99 "+b.title, at(0.99), "ms", p99)
	b.rep.note(fmt.Sprintf("%d changes", len(list)))
}
