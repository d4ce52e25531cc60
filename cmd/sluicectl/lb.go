package main

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/admin/nodeapi"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/maglev"
	"github.com/ovn-sluice/sluice/pkg/output"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func lbCommand(o *options) *cobra.Command {
	c := &cobra.Command{Use: "lb", Short: "Load balancers of OVN, and what serves their VIPs"}
	c.AddCommand(vrfList[[]status.VIP]{
		use: "list", short: "All VIPs with their path, its reason and their backends", long: longVIPs, write: writeVIPs,
		ask: func(c *cobra.Command, vni intent.VNI) ([]status.VIP, error) {
			return admin.Call(c.Context(), o.client(), nodeapi.ListVIPs, nodeapi.VRFSelector{VNI: vni})
		},
	}.command(o), vrfList[[]status.VIP]{
		use: "backends", short: "All backends with their state, slots of the Maglev table and sessions", long: longBackends, write: writeBackends,
		ask: func(c *cobra.Command, vni intent.VNI) ([]status.VIP, error) { return o.backends(c, vni) },
	}.command(o), vrfList[status.Sessions]{
		use: "sessions", short: "Sessions of VIPs on this node, with their backends", long: longSessions, write: writeSessions,
		ask: func(c *cobra.Command, vni intent.VNI) (status.Sessions, error) {
			return admin.Call(c.Context(), o.client(), nodeapi.ListSessions, nodeapi.VRFSelector{VNI: vni})
		},
	}.command(o), lbVMs(o), lbShow(o), lbExplain(o), lbDrain(o), lbUndrain(o))
	return c
}

const (
	longVIPs = `All VIPs with their path, its reason and their backends. 'sluicectl status' shows what
cannot be read of a load balancer.

The scope is the VNI of a router's VRF, for packets from the fabric, or the name of a switch, for packets of its VMs here.`
	longBackends = `All backends with their state, slots of the Maglev table and sessions. SLOTS and SESSIONS are those of
one VIP; NEW SESSIONS and BYTES are those of all VIPs of the VRF or switch, since the backend was added. Each
node counts the traffic that enters the cloud through it.

The state is up, draining (weight 0; OVN, which has no weights, does not drain), or down, as Service_Monitor
says.`
	longSessions = `Sessions of VIPs on this node, with their backends. The scope of a session of a VM here is the VM's switch. The
state is opening, before the client's second packet; open; or ending, after a FIN or RST. IDLE is the time since
the client's last packet.`
)

// lbVMs lists the VMs whose sessions are balanced on their taps, or might be.
func lbVMs(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "vms", Short: "VMs of this node on switches with VIPs, what balances their sessions, and why", Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := admin.Call(c.Context(), o.client(), nodeapi.ListVMs, admin.Nothing{})
			if err != nil {
				return err
			}
			return o.print(c.OutOrStdout(), list, func(w io.Writer) error { return writeVMs(w, list) })
		},
	}
}

func writeVMs(w io.Writer, list []status.VM) error {
	t := output.Table{Header: []string{"PORT", "SWITCH", "DEVICE", "STATE", "PATH", "REASON"}}
	for _, m := range list {
		device := m.Device
		switch {
		case device == "":
			device = "-"
		case m.VLAN != 0:
			device = fmt.Sprintf("%s VLAN %d", device, m.VLAN)
		}
		t.Add(m.Port, m.Switch, device, string(m.State), m.Path, m.Reason)
	}
	return t.Write(w)
}

func (o *options) backends(c *cobra.Command, vni intent.VNI) ([]status.VIP, error) {
	return admin.Call(c.Context(), o.client(), nodeapi.ListBackends, nodeapi.VRFSelector{VNI: vni})
}

// lbShow is "lb backends" of the VIPs of one address, or of one load balancer.
func lbShow(o *options) *cobra.Command {
	var vrf string
	c := &cobra.Command{
		Use: "show VIP|LOADBALANCER", Short: "The VIPs of an address, or of a load balancer by its name, in full",
		Long: "The VIPs of an address, or of a load balancer by its name, in full. 'sluicectl lb backends --help' explains the\n" +
			"columns.",
		Args: exactArgs("VIP|LOADBALANCER"),
		RunE: func(c *cobra.Command, args []string) error {
			vni, err := optionalVNI(vrf)
			if err != nil {
				return err
			}
			all, err := o.backends(c, vni)
			if err != nil {
				return err
			}
			vips := slices.DeleteFunc(all, func(v status.VIP) bool { return v.LoadBalancer != args[0] && !isVIP(v, args[0]) })
			if len(vips) == 0 {
				where := "here"
				if vni != 0 {
					where = "of VRF " + vni.String()
				}
				return fmt.Errorf("no VIP %s has the address or the load balancer %q; 'sluicectl lb list' shows the VIPs of this node, and 'sluicectl status' what cannot be read of load balancers", where, args[0])
			}
			return o.print(c.OutOrStdout(), vips, func(w io.Writer) error { return showVIPs(w, vips) })
		},
	}
	o.vrfFlag(c, &vrf, "only this VNI")
	return c
}

// isVIP tells whether a person means a VIP by its address, with or without its port, however
// that is written.
func isVIP(v status.VIP, text string) bool {
	plain := text
	if inner, ok := strings.CutPrefix(text, "["); ok {
		plain = strings.TrimSuffix(inner, "]")
	}
	if a, err := netip.ParseAddr(plain); err == nil {
		return v.Address == a.Unmap()
	}
	e, err := netip.ParseAddrPort(text)
	return err == nil && e.Addr().Unmap() == v.Address && e.Port() == v.Port
}

func showVIPs(w io.Writer, vips []status.VIP) error {
	for i, v := range vips {
		if i > 0 {
			fmt.Fprintln(w)
		}
		output.Printf(w, "%s/%s of %s in %s\n", intent.FormatEndpoint(v.Address, v.Port), v.Protocol, v.LoadBalancer, v.Where())
		output.Printf(w, "path:  %s (%s%s)\n", v.Path, v.Reason, detail(v.ReasonDetail))
		output.Printf(w, "state: %s%s\n", vipState(v), detail(v.Error))
		if v.Affinity != 0 {
			output.Printf(w, "affinity: %d s\n", v.Affinity)
		}
		if v.Flush {
			fmt.Fprintln(w, "sessions of a removed backend end (ct_flush)")
		}
		if v.TableHash != "" {
			output.Printf(w, "Maglev table: %d slots, hash %s\n", v.Slots, v.TableHash)
		}
		if t := v.Traffic; t != nil {
			output.Printf(w, "sessions: %d new; in %d packets, %d bytes; out %d packets, %d bytes; %d packets unrecorded, %d dropped\n",
				t.Sessions, t.ToBackends.Packets, t.ToBackends.Bytes, t.ToClients.Packets, t.ToClients.Bytes, t.Unrecorded, t.Drops)
		}
		if err := writeBackends(w, []status.VIP{v}); err != nil {
			return err
		}
	}
	return nil
}

func detail(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

func vipState(v status.VIP) string {
	if v.Standby && v.State == status.OK {
		return "standby"
	}
	return string(v.State)
}

func writeBackends(w io.Writer, vips []status.VIP) error {
	t := output.Table{Header: []string{"SCOPE", "VIP", "PROTOCOL", "PATH", "BACKEND", "WEIGHT", "STATE", "SLOTS", "SESSIONS", "NEW SESSIONS", "BYTES IN", "BYTES OUT"}}
	for _, v := range vips {
		for _, b := range v.Backends {
			began, in, out := "-", "-", "-"
			if b.Traffic != nil {
				began, in, out = fmt.Sprint(b.Traffic.Sessions), fmt.Sprint(b.Traffic.ToBackends.Bytes), fmt.Sprint(b.Traffic.ToClients.Bytes)
			}
			t.Add(v.Scope(), intent.FormatEndpoint(v.Address, v.Port), v.Protocol.String(), v.Path, intent.FormatEndpoint(b.Addr, b.Port),
				fmt.Sprint(b.Weight), string(b.State), fmt.Sprint(b.Slots), fmt.Sprint(b.Sessions), began, in, out)
		}
	}
	return t.Write(w)
}

func writeSessions(w io.Writer, list status.Sessions) error {
	t := output.Table{Header: []string{"SCOPE", "PROTOCOL", "CLIENT", "VIP", "BACKEND", "STATE", "IDLE"}}
	for _, s := range list.Sessions {
		t.Add(s.Scope(), s.Protocol.String(), s.Client.String(), s.VIP.String(), s.Backend.String(), s.State, fmt.Sprintf("%d s", s.Idle))
	}
	err := t.Write(w)
	if more := list.Total - len(list.Sessions); more > 0 && err == nil {
		_, err = output.Printf(w, "%d more of %d are not listed\n", more, list.Total)
	}
	return err
}

func lbExplain(o *options) *cobra.Command {
	var vrf string
	var q status.VIPQuery
	c := &cobra.Command{
		Use: "explain {--vrf VNI|--switch NAME} PROTOCOL CLIENT:PORT VIP:PORT", Short: "Which backend a session gets, on this node and on any other, and why",
		Args: exactArgs("PROTOCOL", "CLIENT:PORT", "VIP:PORT"),
		RunE: func(c *cobra.Command, args []string) error {
			var err error
			switch {
			case q.Switch == "" && vrf == "":
				err = usagef("--vrf or --switch is missing: the tenant's VNI, for packets from the fabric, or the name of a switch, for packets of its VMs")
			case q.Switch == "":
				q.VNI, err = parseVNI(vrf)
			case vrf != "":
				err = usagef("--vrf and --switch exclude each other: give one of them")
			}
			if err != nil {
				return err
			}
			if err := q.Protocol.UnmarshalText([]byte(args[0])); err != nil {
				return usagef("%v", err)
			}
			if q.Client, err = parseEnd("client", args[1]); err != nil {
				return err
			}
			if q.Client.Port() == 0 {
				return usagef("client %q: a client has no port 0", args[1])
			}
			if q.VIP, err = parseEnd("VIP", args[2]); err != nil {
				return err
			}
			if q.Client.Addr().Is4() != q.VIP.Addr().Is4() {
				return usagef("client %s and VIP %s have different address families", q.Client, q.VIP)
			}
			e, err := admin.Call(c.Context(), o.client(), nodeapi.ExplainVIP, q)
			if err != nil {
				return err
			}
			return o.print(c.OutOrStdout(), e, func(w io.Writer) error { return writeVIPExplanation(w, e) })
		},
	}
	o.vrfFlag(c, &vrf, "the tenant's VNI, for packets from the fabric")
	c.Flags().StringVar(&q.Switch, "switch", "", "the name of a switch, for packets of its VMs")
	return c
}

// parseEnd reads an address with its port.
func parseEnd(what, text string) (netip.AddrPort, error) {
	end, err := netip.ParseAddrPort(text)
	if err != nil || end.Addr().Zone() != "" {
		return end, usagef("%s %q: write ADDRESS:PORT, an IPv6 address in brackets", what, text)
	}
	return netip.AddrPortFrom(end.Addr().Unmap(), end.Port()), nil
}

func writeVIPExplanation(w io.Writer, e status.VIPExplanation) error {
	if err := writeVIPs(w, []status.VIP{e.VIP}); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if e.VIP.Path != "ebpf" {
		if e.Session != nil {
			output.Printf(w, "this node has an earlier session: to %s\n", e.Session)
		}
		_, err := output.Printf(w, "OVN chooses the backend of new sessions: %s\n", e.VIP.ReasonDetail)
		return err
	}
	if e.LeftToOVN != "" {
		output.Printf(w, "this node leaves the session to OVN: %s\n", e.LeftToOVN)
	}
	if e.Session != nil {
		output.Printf(w, "this node has the session: to %s\n", e.Session)
	}
	if e.Affinity != nil {
		output.Printf(w, "session affinity of the client: its new sessions get %s on this node\n", e.Affinity)
	}
	if e.Backend == nil {
		_, err := fmt.Fprintln(w, "no backend gets new sessions: packets without a session are dropped (no_backend)")
		return err
	}
	_, err := output.Printf(w, "a node without a session chooses %[3]s (slot %[1]d of %[2]d)\n", e.Slot, e.VIP.Slots, intent.FormatEndpoint(e.Backend.Addr, e.Backend.Port))
	return err
}

func writeVIPs(w io.Writer, vips []status.VIP) error {
	t := output.Table{Header: []string{"SCOPE", "VIP", "PROTOCOL", "LOAD BALANCER", "STATE", "PATH", "REASON", "BACKENDS"}}
	for _, v := range vips {
		live := 0
		for _, b := range v.Backends {
			if b.State == status.BackendUp {
				live++
			}
		}
		t.Add(v.Scope(), intent.FormatEndpoint(v.Address, v.Port), v.Protocol.String(), v.LoadBalancer, vipState(v), v.Path, v.Reason,
			fmt.Sprintf("%d of %d", live, len(v.Backends)))
	}
	return t.Write(w)
}

func lbDrain(o *options) *cobra.Command {
	weight := uint16(0)
	c := &cobra.Command{
		Use: "drain LOADBALANCER BACKEND", Short: "Give a backend no new sessions, on all nodes",
		Long: `Give a backend of a load balancer no new sessions, on all nodes: sluiced writes the weight 0
for it into options:sluice-weights of the Load_Balancer row, in the Northbound database. Its sessions
continue. 'sluicectl lb backends' shows how many are left; 'sluicectl lb undrain' takes the drain back.

OVN has no weights: VIPs and VMs with the path ovn still give the backend new sessions.
The answer names this node's VIPs and VMs with that path.`,
		Args: exactArgs("LOADBALANCER", "BACKEND"),
		RunE: func(c *cobra.Command, args []string) error { return o.weigh(c, args, &weight) },
	}
	c.Flags().Uint16Var(&weight, "weight", 0, "give it this share of new sessions, 0 to 256")
	return c
}

func lbUndrain(o *options) *cobra.Command {
	return &cobra.Command{
		Use: "undrain LOADBALANCER BACKEND", Short: "Give a backend new sessions again after 'sluicectl lb drain'",
		Args: exactArgs("LOADBALANCER", "BACKEND"),
		RunE: func(c *cobra.Command, args []string) error { return o.weigh(c, args, nil) },
	}
}

func (o *options) weigh(c *cobra.Command, args []string, weight *uint16) error {
	if weight != nil && *weight > maglev.MaxWeight {
		return usagef("--weight %d: a weight is a number from 0 to %d", *weight, maglev.MaxWeight)
	}
	weighed, err := admin.Call(c.Context(), o.client(), nodeapi.Weigh, nodeapi.WeighRequest{LoadBalancer: args[0], Backend: args[1], Weight: weight})
	if err != nil {
		return err
	}
	has := "its share of new sessions again"
	if weight != nil {
		has = fmt.Sprintf("the weight %d", *weight)
	}
	return o.print(c.OutOrStdout(), weighed, func(w io.Writer) error {
		for _, what := range weighed.ByOVN {
			output.Printf(c.ErrOrStderr(), "sluicectl: OVN balances %s, and has no weights: the backend gets new sessions as before\n", what)
		}
		_, err := output.Printf(w, "%s of %s has %s, on all nodes\n", args[1], args[0], has)
		return err
	})
}
