package control

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/test/bench/measure"
	"github.com/ovn-sluice/sluice/test/lab"
)

// Goals of the median of changes, in milliseconds.
const (
	portGoal = 3
	vrfGoal  = 30
)

const (
	// tenant is whose port and network change.
	tenant, network = "t0001", "net"
	// firstVNI is that of the first new VRF; each has one that was not there before.
	firstVNI = 30001
	// apart is between two changes of a port, and vrfsApart between two of a VRF: what follows the
	// first one, as its flows that are removed, is over.
	apart, vrfsApart = 50 * time.Millisecond, 300 * time.Millisecond
	// annotation names the VNI of a network, on the switch port of its router.
	annotation = "neutron_bgpvpn:vni"
)

// changes times bound ports and new VRFs, from the Southbound transaction to the UPDATE.
func (c *cloud) changes(ctx context.Context) (out []measure.Result, err error) {
	if err := c.quiet(ctx); err != nil {
		return nil, err
	}
	for _, one := range []struct {
		name  string
		goal  float64
		times func(context.Context) (took, database []time.Duration, err error)
	}{
		{"port bound in Southbound to UPDATE", portGoal, c.ports},
		{"annotation of a new VRF to Type-5 route", vrfGoal, c.newVRFs},
	} {
		took, database, err := one.times(ctx)
		if err != nil {
			return out, fmt.Errorf("%s: %w", one.name, err)
		}
		note := fmt.Sprintf("%d changes; the database took %.1f ms of each (p50)", len(took), measure.Quantile(database, 0.5))
		out = append(out,
			measure.Result{Name: one.name + " p50", Value: measure.Quantile(took, 0.5), Unit: "ms", Goal: measure.AtMost(one.goal), Note: note},
			measure.Result{Name: one.name + " p99", Value: measure.Quantile(took, 0.99), Unit: "ms", Note: note})
	}
	return out, nil
}

// binding is a row of Port_Binding.
type binding struct {
	db          *lab.Database
	id, chassis string
	external    [][2]string
}

// port finds a port. By its _uuid it is changed: for any other column the server looks at each row.
func (c *cloud) port(ctx context.Context, name string) (*binding, error) {
	db, err := c.lab.OpenDatabase(ctx, cloudName, "sb")
	if err != nil {
		return nil, err
	}
	var found struct {
		Rows []struct {
			UUID     [2]string   `json:"_uuid"`
			Chassis  [2]any      `json:"chassis"`
			External [2]ovsdbMap `json:"external_ids"`
		}
	}
	err = db.Transact(&found, fmt.Sprintf(`{"op":"select","table":"Port_Binding","where":[["logical_port","==",%q]],"columns":["_uuid","chassis","external_ids"]}`, name))
	if err == nil && len(found.Rows) != 1 {
		err = fmt.Errorf("%d rows of Port_Binding for %s", len(found.Rows), name)
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	row := found.Rows[0]
	b := &binding{db: db, id: row.UUID[1], external: row.External[1].pairs}
	b.chassis, _ = row.Chassis[1].(string) // a set where it has none
	return b, nil
}

// ovsdbMap is either half of ["map", [[key, value], …]] (RFC 7047, section 5.1).
type ovsdbMap struct{ pairs [][2]string }

func (m *ovsdbMap) UnmarshalJSON(b []byte) error {
	var word string
	if json.Unmarshal(b, &word) == nil {
		return nil
	}
	return json.Unmarshal(b, &m.pairs)
}

func (b *binding) update(values string) string {
	return fmt.Sprintf(`{"op":"update","table":"Port_Binding","where":[["_uuid","==",["uuid",%q]]],"row":{%s}}`, b.id, values)
}

func (b *binding) set(values string) error { return b.db.Transact(nil, b.update(values)) }

// timed makes a change and waits for what it is to bring.
func timed(change func() error, await func() (time.Time, error)) (took, database time.Duration, err error) {
	begin := time.Now()
	if err := change(); err != nil {
		return 0, 0, err
	}
	database = time.Since(begin)
	at, err := await()
	return at.Sub(begin), database, err
}

// ports times the binding of a port.
func (c *cloud) ports(ctx context.Context) (took, database []time.Duration, err error) {
	name := tenant + "-0"
	port, err := c.port(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	defer port.db.Close()
	keys := c.keysOf(name)
	for range c.Changes {
		if err := port.set(`"chassis":["set",[]],"up":false`); err != nil {
			return nil, nil, err
		}
		if err := c.neighbour.awaitGone(ctx, func(k intent.RouteKey) bool { return k == keys[0] || k == keys[1] }); err != nil {
			return nil, nil, err
		}
		if err := sleep(ctx, apart); err != nil {
			return nil, nil, err
		}
		one, db, err := timed(func() error {
			return port.set(fmt.Sprintf(`"chassis":["uuid",%q],"up":true`, port.chassis))
		}, func() (time.Time, error) { return c.neighbour.awaitAll(ctx, keys) })
		if err != nil {
			return nil, nil, err
		}
		took, database = append(took, one), append(database, db)
		if err := sleep(ctx, apart); err != nil {
			return nil, nil, err
		}
	}
	return took, database, nil
}

// keysOf are the two host routes of a VM.
func (c *cloud) keysOf(name string) []intent.RouteKey {
	for _, one := range c.lab.Scenario().Clouds {
		for _, vm := range one.VMs {
			if vm.Name != name {
				continue
			}
			for _, t := range one.Tenants {
				if t.Name == vm.Tenant {
					return []intent.RouteKey{intent.NewHostKey(intent.VNI(t.VNI), vm.Addr4), intent.NewHostKey(intent.VNI(t.VNI), vm.Addr6)}
				}
			}
		}
	}
	return nil
}

// newVRFs times VRFs that come with the annotation of a tenant's ports, until all of its hosts are announced.
func (c *cloud) newVRFs(ctx context.Context) (took, database []time.Duration, err error) {
	var ports []*binding
	for _, name := range []string{lab.InterfaceSwitchPort(tenant, network), lab.GatewaySwitchPort(tenant)} {
		port, err := c.port(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		defer port.db.Close()
		ports = append(ports, port)
	}
	annotate := func(vni intent.VNI) error {
		return ports[0].db.Transact(nil, ports[0].update(ports[0].annotated(vni)), ports[1].update(ports[1].annotated(vni)))
	}
	vni := c.keysOf(tenant + "-0")[0].VNI
	hosts := c.keysByVNI()[vni]
	for n := range c.Changes {
		if err := annotate(0); err != nil {
			return nil, nil, err
		}
		if err := c.neighbour.awaitGone(ctx, func(k intent.RouteKey) bool { return k.VNI == vni }); err != nil {
			return nil, nil, err
		}
		if err := sleep(ctx, vrfsApart); err != nil {
			return nil, nil, err
		}
		vni = firstVNI + intent.VNI(n)
		keys := make([]intent.RouteKey, len(hosts))
		for i, k := range hosts {
			keys[i] = intent.RouteKey{VNI: vni, Prefix: k.Prefix}
		}
		one, db, err := timed(func() error { return annotate(vni) }, func() (time.Time, error) { return c.neighbour.awaitAll(ctx, keys) })
		if err != nil {
			return nil, nil, err
		}
		took, database = append(took, one), append(database, db)
		if err := sleep(ctx, vrfsApart); err != nil {
			return nil, nil, err
		}
	}
	return took, database, nil
}

// annotated are the port's external_ids with another VNI, or with none.
func (b *binding) annotated(vni intent.VNI) string {
	pairs := [][2]string{}
	for _, p := range b.external {
		if p[0] == annotation {
			if vni == 0 {
				continue
			}
			p[1] = vni.String()
		}
		pairs = append(pairs, p)
	}
	text, _ := json.Marshal(pairs)
	return fmt.Sprintf(`"external_ids":["map",%s]`, text)
}
