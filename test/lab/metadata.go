package lab

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/test/nova"
)

// NetworkID is a stable id of a network in Neutron.
func NetworkID(name string) string {
	h := sha256.Sum256([]byte(name))
	h[6], h[8] = h[6]&0x0f|0x40, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// Switch is the logical switch of a tenant's network.
func (n Network) Switch(tenant string) string {
	if n.ID != "" {
		return "neutron-" + n.ID
	}
	return SwitchName(tenant, n.Name)
}

func (n Network) mtu() int {
	if n.MTU != 0 {
		return n.MTU
	}
	return VMMTU
}

// Namespace is what neutron's agent calls the namespace of the network's metadata port.
func (n Network) Namespace() string { return "ovnmeta-" + n.ID }

// MetadataPort is the network's metadata port, its address, and the MAC address that it
// has.
func (n Network) MetadataPort() (port, mac string) {
	port = "metadata-" + n.ID
	return port, macOf(port)
}

// metadataAddr is the IPv4 address of the metadata port: the second one of the subnet.
func (n Network) metadataAddr() netip.Addr {
	if !n.Metadata {
		return netip.Addr{}
	}
	return nth(n.Subnet4, 2)
}

// MetadataAddrs are the addresses of the metadata port, with the length of their subnet.
func (n Network) MetadataAddrs() []netip.Prefix {
	var out []netip.Prefix
	for _, s := range []netip.Prefix{n.Subnet4, n.Subnet6} {
		if s.IsValid() {
			out = append(out, netip.PrefixFrom(nth(s, 2), s.Bits()))
		}
	}
	return out
}

// addMetadataPort adds the port that Neutron makes for each network with DHCP
// (neutron/plugins/ml2/drivers/ovn/mech_driver: create_metadata_port).
func (b *ctlBatch) addMetadataPort(t Tenant, n Network) {
	port, mac := n.MetadataPort()
	words, cidrs := []string{mac}, []string{}
	for _, a := range n.MetadataAddrs() {
		words, cidrs = append(words, a.Addr().String()), append(cidrs, a.String())
	}
	b.add("lsp-add", n.Switch(t.Name), port)
	b.add("lsp-set-type", port, "localport")
	b.add("lsp-set-addresses", port, strings.Join(words, " "))
	b.setIDs(port, "device_owner", "network:distributed", "device_id", n.Namespace(), "cidrs", strings.Join(cidrs, " "),
		"mtu", strconv.Itoa(n.mtu()), "network_name", "neutron-"+n.ID, "project_id", "", "port_name", "")
}

// addOwner writes whose port a machine's is, and on which network.
func (b *ctlBatch) addOwner(vm VM, n Network) {
	if n.ID != "" {
		b.setIDs(vm.Name, "network_name", n.Switch(vm.Tenant))
	}
	if vm.Instance != "" {
		b.setIDs(vm.Name, "device_id", vm.Instance, "device_owner", "compute:nova")
	}
	if vm.Project != "" {
		b.setIDs(vm.Name, "project_id", vm.Project)
	}
}

// setIDs sets keys neutron:NAME of a port's external_ids, by pairs of name and value.
func (b *ctlBatch) setIDs(port string, pairs ...string) {
	args := []string{"set", "Logical_Switch_Port", port}
	for i := 0; i < len(pairs); i += 2 {
		args = append(args, fmt.Sprintf(`external_ids:neutron\:%s="%s"`, pairs[i], pairs[i+1]))
	}
	b.add(args...)
}

// NovaSecret is what the lab's Nova and the metadata proxies share.
const NovaSecret = "the secret of the lab"

// NovaInstances are the machines of a cloud that are instances of Nova.
func (c Cloud) NovaInstances() []nova.Instance {
	var out []nova.Instance
	for _, vm := range c.VMs {
		if vm.Instance == "" {
			continue
		}
		n, err := c.network(vm.Tenant, vm.Network)
		if err != nil {
			continue // such a VM is not made
		}
		out = append(out, nova.Instance{
			ID: vm.Instance, Project: vm.Project, Name: vm.Name, UserData: []byte("#cloud-config\n# of " + vm.Name + "\n"),
			VendorData: json.RawMessage(`{"cloud":"lab"}`), Address: vm.Addr4, MAC: vm.mac(), MTU: n.mtu(),
		})
	}
	return out
}

// NovaAddress is where a cloud's Nova listens, on the node of its databases.
func (l *Lab) NovaAddress(cloud string) (string, error) {
	n, err := l.Node(Cloud{Name: cloud}.central())
	if err != nil {
		return "", err
	}
	return net.JoinHostPort(n.VTEP4.String(), strconv.Itoa(nova.Port)), nil
}

// MetadataConfig is the section metadata of a configuration of sluiced in a cloud, after
// NodeConfig. More lines go into it.
func (l *Lab) MetadataConfig(cloud string, more ...string) (string, error) {
	n, err := l.Node(Cloud{Name: cloud}.central())
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("metadata:\n  backend: nova\n  nova:\n    hosts: [%s]\n    secretFile: %s\n  socket: ${SLUICE_METADATA_SOCKET}\n",
		n.VTEP4, filepath.Join(l.dir, secretName))
	for _, line := range more {
		text += "  " + line + "\n"
	}
	return text, nil
}

const secretName = "nova.secret"

// writeSecret is done before anything reads it.
func (l *Lab) writeSecret() error {
	return writeFile(filepath.Join(l.dir, secretName), []byte(NovaSecret+"\n"))
}
