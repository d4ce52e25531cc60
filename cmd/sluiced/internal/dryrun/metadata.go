package dryrun

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	steered "github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/metadata"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/dataplane/ebpf/taps"
	identities "github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/dataplane/metadata/steering"
	"github.com/ovn-sluice/sluice/dataplane/owned"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/reconcile"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
	"github.com/ovn-sluice/sluice/pkg/wanted"
)

// planMetadata lists the changes of metadata, in the order of a start.
func (d dryRun) planMetadata(ctx context.Context) ([]status.Change, error) {
	pins := owned.MetadataPins(d.Config.Dataplane.BPFFS)
	if !d.Config.Metadata.Used() {
		things, err := owned.Metadata(ctx, d.Switch, namespace.Names{}, pins)
		return leftovers(things), err
	}
	all := d.Metadata.Wanted()
	reader, err := taps.Inspect(pins, pinned.HookAuto)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	changes, err := reader.Changes(d.Config.Metadata.StaleAfter.Duration)
	if err != nil {
		return nil, err
	}
	proxy, err := planProxy()
	if err != nil {
		return nil, err
	}
	rows, err := d.planRows(ctx, reader, all)
	if err != nil {
		return nil, err
	}
	devices := tapsOf(wanted.Rows(all, intent.MetadataPorts))
	index := uint32(0)
	if host, err := net.InterfaceByName(namespace.ProxyHost); err == nil {
		index = uint32(host.Index)
	}
	attachments, err := reader.Attachments(namespace.ProxyHost, index, devices)
	return slices.Concat(changes, proxy, rows, attachments), err
}

// planProxy is what becomes of the proxy's namespace.
func planProxy() ([]status.Change, error) {
	proxy := namespace.NewProxy(namespace.ProxyConfig{})
	parts, err := proxy.Parts()
	if err != nil {
		return nil, err
	}
	out := made(parts, reason.Foreign)
	if len(out) > 0 {
		return out, nil
	}
	differs, err := proxy.Check()
	if len(differs) > 0 {
		out = append(out, status.Change{Table: parts[0].Kind, Key: parts[0].Name, Action: string(reconcile.OpChange), Actual: strings.Join(differs, "; ")})
	}
	return out, err
}

// planRows compares the tables, and says what their rows are made of.
func (d dryRun) planRows(ctx context.Context, reader *taps.Reader, all wanted.Set) (out []status.Change, err error) {
	networks := namespace.NewNetworks(namespace.NetworksConfig{Ports: d.Switch})
	ports := steering.New(steering.Config{Maps: onlyRead{reader}, File: identities.Path(d.Config.StateDir)})
	t := tables.NewMetadata(steered.Drivers(reconcile.ReadOnly(networks), reconcile.ReadOnly(ports)), d.Steps.AllInSync, nil, tables.Options{Status: d.Reg, Log: d.Log, Dry: true})
	t.Pipeline.Update(func() { t.Set(all) })
	changes, err := t.Pipeline.Compare(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		out = append(out, tables.ChangeOf(c))
		if c.Table != intent.MetadataNetworks.Name {
			continue
		}
		parts, err := networks.Parts(c.Key)
		if err != nil {
			return nil, err
		}
		if c.Op == reconcile.OpDelete {
			out = append(out, removed(parts)...)
		} else {
			out = append(out, made(parts, reason.Foreign+"; see sluicectl adopt")...)
		}
	}
	put, gone, err := ports.Preview(ctx, wanted.Rows(all, intent.MetadataPorts))
	return append(out, vmChanges(put, gone, tapsOf(wanted.Rows(all, intent.MetadataPorts)))...), err
}

// made are the parts that would be made, and those in whose place is something of others.
func made(parts []namespace.Part, foreign string) (out []status.Change) {
	for _, p := range parts {
		c := status.Change{Table: p.Kind, Key: p.Name, Action: string(reconcile.OpAdd)}
		switch {
		case p.Foreign():
			c.Error = foreign
		case p.There:
			continue
		}
		out = append(out, c)
	}
	return out
}

// removed are the parts that would go.
func removed(parts []namespace.Part) (out []status.Change) {
	for _, p := range parts {
		if p.Ours {
			out = append(out, status.Change{Table: p.Kind, Key: p.Name, Action: string(reconcile.OpDelete)})
		}
	}
	return out
}

// tapsOf are the names of the taps that ports are served at, by their index.
func tapsOf(ports map[string]intent.MetadataPort) map[uint32]string {
	out := map[uint32]string{}
	for _, p := range ports {
		if p.Tap != (intent.Tap{}) {
			out[p.Tap.IfIndex] = p.Tap.Name
		}
	}
	return out
}

// vmChanges are the changes of rows that say which VM may ask behind which tap.
func vmChanges(put, gone []taps.Source, names map[uint32]string) []status.Change {
	const vm = "vm"
	changes := map[string]status.Change{}
	for _, s := range gone {
		key := vmKey(s, names)
		changes[key] = status.Change{Table: vm, Key: key, Action: string(reconcile.OpDelete)}
	}
	for _, s := range put {
		key := vmKey(s, names)
		op := reconcile.OpAdd
		if _, there := changes[key]; there {
			op = reconcile.OpChange
		}
		changes[key] = status.Change{Table: vm, Key: key, Action: string(op), Wanted: fmt.Sprintf("answered from %s", s.Answer)}
	}
	return slices.SortedFunc(maps.Values(changes), func(a, b status.Change) int { return cmp.Compare(a.Key, b.Key) })
}

func vmKey(s taps.Source, names map[uint32]string) string {
	who := "IPv6"
	if s.Addr.IsValid() {
		who = s.Addr.String()
	}
	key := fmt.Sprintf("%s of %s on %s", who, s.MAC, cmp.Or(names[s.IfIndex], fmt.Sprintf("device %d", s.IfIndex)))
	if s.VLAN != 0 {
		key += fmt.Sprintf(", VLAN %d", s.VLAN)
	}
	return key
}

// onlyRead is a Reader for a driver that only lists.
type onlyRead struct{ *taps.Reader }

func (onlyRead) Put(taps.Source) error    { return reconcile.ErrReadOnly }
func (onlyRead) Remove(taps.Source) error { return reconcile.ErrReadOnly }
func (onlyRead) Attach(uint32) error      { return reconcile.ErrReadOnly }
func (onlyRead) Detach(uint32) error      { return reconcile.ErrReadOnly }

// leftovers are things of an earlier start that this one would remove.
func leftovers(things []owned.Thing) (out []status.Change) {
	for _, t := range things {
		out = append(out, status.Change{Table: "leftover", Key: t.What, Action: string(reconcile.OpDelete)})
	}
	return out
}
