package report

import (
	"cmp"
	"fmt"

	steered "github.com/ovn-sluice/sluice/cmd/sluiced/internal/taps/metadata"

	"github.com/ovn-sluice/sluice/controlplane/metadata"
	"github.com/ovn-sluice/sluice/dataplane/metadata/namespace"
	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// Metadata is the answer to "sluicectl metadata ports".
func (r *Report) Metadata() status.Metadata {
	note := r.cfg.Metadata.Unused()
	out := status.Metadata{Used: note == "", Note: note, Ports: []status.MetadataPort{}}
	if !out.Used {
		return out
	}
	ports, work := r.metadata.Ports(), r.metadata.Running()
	if work == nil {
		out.Proxy = "metadata has not started; see sluicectl status"
	} else {
		out.Proxy = work.Problem(r.cfg.Metadata.StaleAfter.Duration)
	}
	for _, p := range ports {
		out.Ports = append(out.Ports, portOf(work, p))
	}
	return out
}

// port joins what is wanted of a port and what there is. Without w nothing is
// there.
func portOf(w *steered.Running, p metadata.PortStatus) status.MetadataPort {
	out := status.MetadataPort{
		Port: p.Port, Network: p.Network, Instance: p.Instance, Project: p.Project, Served: pathOf(p.Via),
		Reason: p.Reason, Detail: p.Detail, Device: p.Tap.Name, VLAN: p.Tap.VLAN, Addresses: p.Addresses,
	}
	if p.Via == metadata.ViaNamespace {
		_, out.Device = namespace.Devices(p.Network)
	}
	if w == nil || out.Served == status.LeftToOVN {
		return out
	}
	done, err := tables.Of(w.Tables, intent.MetadataPorts).State(p.Port)
	if done && p.Via == metadata.ViaNamespace {
		done, err = tables.Of(w.Tables, intent.MetadataNetworks).State(p.Network)
	}
	if out.Programmed = done; err != nil {
		out.Error = err.Error()
	}
	return out
}

func pathOf(v metadata.Via) status.MetadataPath {
	switch v {
	case metadata.ViaTap:
		return status.FromTap
	case metadata.ViaNamespace:
		return status.FromNamespace
	}
	return status.LeftToOVN
}

// ExplainMetadata is the answer to "sluicectl metadata explain": the steps of a request.
func (r *Report) ExplainMetadata(name string) (status.MetadataExplanation, error) {
	all, out := r.Metadata(), status.MetadataExplanation{Port: name, Works: true}
	step := func(layer status.Layer, object string, found bool, detail, hint string) {
		out.Works = out.Works && found
		out.Steps = append(out.Steps, status.Step{Layer: layer, Object: object, Found: found, Detail: detail, Hint: hint})
	}
	step(status.LayerIntent, "metadata", all.Used, cmp.Or(all.Note, "backend "+string(r.cfg.Metadata.Backend)), "Set metadata.backend, and restart sluiced.")
	if !all.Used {
		return out, nil
	}
	port, err := all.Find(name)
	if err != nil {
		return out, fmt.Errorf("%w: %w", admin.ErrBadRequest, err)
	}
	if port == nil {
		step(status.LayerOVN, "Port_Binding "+name, false, "no port of a VM on this node has that name, instance, tap or address",
			"See ovn-sbctl find Port_Binding logical_port="+name+": its chassis is the node to ask.")
		return out, nil
	}
	out.Port, out.Instance = port.Port, port.Instance
	step(status.LayerOVN, "Port_Binding "+port.Port, true, fmt.Sprintf("network %s, %s", cmp.Or(port.Network, "not known yet"), cmp.Or(port.Addresses.String(), "no addresses")), "")
	step(status.LayerOVN, "external_ids:neutron:device_id", port.Instance != "", cmp.Or(port.Instance, "it names no instance; requests are answered with 404"),
		"Set it on the Logical_Switch_Port; Neutron does when the port is bound.")
	what, parts := "tap "+port.At(), "rows and program"
	if port.Served == status.FromNamespace {
		what, parts = "namespace of network "+port.Network, "namespace, port and identity"
	}
	step(status.LayerIntent, what, port.Served != status.LeftToOVN, note(port), "")
	if port.Served == status.LeftToOVN {
		return out, nil
	}
	step(status.LayerDataplane, parts, port.Programmed, cmp.Or(port.Error, "in place"), "sluicectl status names what is wrong.")
	step(status.LayerDataplane, "proxy", all.Proxy == "", cmp.Or(all.Proxy, "alive"), "Start sluiced metadata on the node, and see its log.")
	return out, nil
}

func note(p *status.MetadataPort) string {
	if p.Reason == "" {
		return "served from there"
	}
	return p.Reason + ": " + p.Detail
}
