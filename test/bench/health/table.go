package health

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/bench/daemons"
	"github.com/ovn-sluice/sluice/test/lab"
)

// vipsMap is the name of the map with a row for each VIP.
const vipsMap = "vips_v2"

// pollEvery is how long is waited between two looks at a row, which costs a system call.
const pollEvery = 50 * time.Microsecond

// rows is a map.
type rows interface {
	// LookupBytes gives no bytes for a key that is not there.
	LookupBytes(key any) ([]byte, error)
	Close() error
}

// table is a node's VIPs of one scope, as its programs see them.
type table struct {
	name  string
	rows  rows
	scope intent.VNI
	took  []time.Duration
}

// tables are those of the node: what the gateway balances, and what taps do. All VIPs are in
// both.
func (b *bench) tables(ctx context.Context) (out []*table, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, closeAll(out))
		}
	}()
	n, err := b.lab.Node(node)
	if err != nil {
		return nil, err
	}
	for _, t := range []struct{ name, pins, in string }{{"the gateway", n.BPFFS, ""}, {"taps", owned.ClientPins(n.BPFFS), lab.SwitchName("red", "net")}} {
		one := &table{name: t.name}
		if err := b.lab.WaitFor(ctx, "VIPs of "+t.name, func() (err error) {
			one.scope, err = b.scope(ctx, t.in)
			return err
		}); err != nil {
			return out, err
		}
		pinned, err := ebpf.LoadPinnedMap(filepath.Join(t.pins, vipsMap), &ebpf.LoadPinOptions{ReadOnly: true})
		if err != nil {
			return out, fmt.Errorf("VIPs of %s: %w", t.name, err)
		}
		one.rows = pinned
		out = append(out, one)
		if err := b.lab.WaitFor(ctx, "all VIPs are in the map of "+t.name, func() error { return one.complete(b.VIPs) }); err != nil {
			return out, err
		}
	}
	return out, nil
}

func closeAll(tables []*table) error {
	var errs []error
	for _, t := range tables {
		errs = append(errs, t.rows.Close())
	}
	return errors.Join(errs...)
}

// scope is the number of the VRF or of the switch where all VIPs are balanced by eBPF; sluicectl
// says so.
func (b *bench) scope(ctx context.Context, in string) (intent.VNI, error) {
	ctl, err := daemons.Beside(b.Sluiced, "sluicectl")
	if err != nil {
		return 0, err
	}
	text, err := b.lab.Exec(ctx, node, ctl, "lb", "list", "-o", "json")
	if err != nil {
		return 0, err
	}
	var list []status.VIP
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return 0, fmt.Errorf("sluicectl lb list on %s: %w", node, err)
	}
	live := slices.DeleteFunc(list, func(v status.VIP) bool { return v.Switch != in || v.Path != "ebpf" || v.State != status.OK })
	if len(live) != b.VIPs {
		return 0, fmt.Errorf("eBPF balances %d of %d VIPs", len(live), b.VIPs)
	}
	return live[0].VNI, nil
}

// complete says whether so many VIPs have a table.
func (t *table) complete(vips int) error {
	for i := range vips {
		if _, err := t.of(i); err != nil {
			return err
		}
	}
	return nil
}

// of is which table the VIP of a number has.
func (t *table) of(i int) (uint32, error) {
	row, err := t.rows.LookupBytes(vipKey(t.scope, vip(i)))
	if err == nil && row == nil {
		err = ebpf.ErrKeyNotExist
	}
	if err != nil {
		return 0, fmt.Errorf("VIP %s of %s: %w", vip(i), t.name, err)
	}
	return binary.NativeEndian.Uint32(row), nil // struct vip: table is first
}
