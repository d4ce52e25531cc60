package config

import (
	"slices"
	"strings"
	"testing"
)

func TestExposure(t *testing.T) {
	const one = "bgp: {asn: 64512, neighbors: [{address: 192.0.2.1, asn: 65001}]}\n"
	c, err := Parse("f.yaml", []byte(one))
	if err != nil || c.Exposure.Used() {
		t.Fatalf("an empty section: %+v, %v", c, err)
	}
	for _, key := range []string{"ports", "floatingIPs", "gateways"} {
		c, err := Parse("f.yaml", []byte(one+"exposure: {"+key+": on}\n"))
		if err != nil || !c.Exposure.Used() || !slices.Equal(c.BGP.Neighbors[0].Families, []Family{FamilyEVPN, FamilyIPv4}) {
			t.Errorf("%s: %+v, %v", key, c, err)
		}
	}
	c, err = Parse("f.yaml", []byte(one+"exposure: {ports: on, networks: [physnet1], prefixes: [192.0.2.0/24, 2001:db8::/32], devices: [eth1]}\n"))
	if err != nil || len(c.Exposure.Prefixes) != 2 || len(c.Exposure.Networks) != 1 || len(c.Exposure.Devices) != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	for text, want := range map[string]string{
		one + "exposure: {ports: yes}\n":                                                                 `exposure.ports: "yes" is not allowed; use on, off`,
		one + "exposure: {port: on}\n":                                                                   "exposure.port: unknown key; did you mean ports?",
		one + "exposure: {networks: ['a:b']}\n":                                                          "exposure.networks[0]: \"a:b\" is no physical network",
		one + "exposure: {networks: [a, a]}\n":                                                           "exposure.networks[1]: a is given twice",
		one + "exposure: {prefixes: [192.0.2.1/24]}\n":                                                   "write 192.0.2.0/24",
		one + "exposure: {prefixes: ['fe80::/64']}\n":                                                    "has no address that can be exposed",
		one + "exposure: {devices: [sluice-vxlan]}\n":                                                    "name a link of the underlay",
		one + "exposure: {devices: [a/b]}\n":                                                             "no name of a link",
		one + "path: kernel\nexposure: {ports: on}\n":                                                    "exposure: needs the eBPF programs",
		one + "roles: none\nexposure: {ports: on}\n":                                                     "exposure: a node with `roles: none` exposes nothing",
		"bgp: {asn: 64512, neighbors: [{address: 192.0.2.1}]}\nexposure: {ports: on}\n":                  "no neighbour takes plain unicast; give one `families: [evpn, ipv4]`",
		"bgp: {asn: 1, neighbors: [{address: 192.0.2.1, families: [evpn]}]}\nexposure: {gateways: on}\n": "no neighbour takes plain unicast",
	} {
		if _, err := Parse("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
