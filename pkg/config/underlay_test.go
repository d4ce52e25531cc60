package config

import (
	"slices"
	"strings"
	"testing"
)

func TestUnderlay(t *testing.T) {
	const text = `
bgp:
  asn: 64512
  neighbors:
    - {interface: eth1, external: true}
    - {interface: eth2, asn: 65002, families: [ipv4]}
    - {address: 192.0.2.1, asn: 65001}
    - {address: "2001:db8::1", asn: 65001}
    - {address: 10.0.0.100}
    - {address: 10.0.0.101, asn: 65001, multihopTTL: 3}
`
	families := func(text string) (out []string) {
		t.Helper()
		c, err := Parse("f.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.Effective()
		if err != nil {
			t.Fatal(err)
		}
		// What is printed says the same.
		if c, err = Parse("f.yaml", again); err != nil {
			t.Fatal(err)
		}
		for _, n := range c.BGP.Neighbors {
			var words []string
			for _, f := range n.Families {
				words = append(words, string(f))
			}
			out = append(out, strings.Join(words, " "))
		}
		return out
	}
	want := []string{"evpn", "ipv4", "evpn", "evpn", "evpn", "evpn"}
	if got := families(text); !slices.Equal(got, want) {
		t.Errorf("without an underlay %q", got)
	}
	want = []string{"evpn ipv4 ipv6", "ipv4", "evpn ipv4", "evpn ipv6", "evpn", "evpn"}
	for _, u := range []string{"underlay: {announce: {vtep: true}}\n", "underlay: {install: {enabled: true}}\n", "underlay: {announce: {prefixes: [192.0.2.0/24]}}\n"} {
		if got := families(text + u); !slices.Equal(got, want) {
			t.Errorf("%swith %q", u, got)
		}
	}
}

func TestUnderlayMistakes(t *testing.T) {
	neighbor := func(s string) string { return "bgp:\n  asn: 1\n  listen: :179\n  neighbors: [" + s + "]\n" }
	const reflector = "bgp:\n  asn: 64512\n  neighbors:\n    - address: 192.0.2.1\n"
	const router = "bgp:\n  asn: 64512\n  neighbors: [{address: 192.0.2.1, asn: 65001}]\n"
	const router6 = "bgp:\n  asn: 64512\n  neighbors: [{address: '2001:db8::1', asn: 65001}]\n"
	for text, want := range map[string]string{
		head + "underlay: {install: {metric: 0}}\n":                                      "underlay.install.metric: 0 would replace",
		head + "underlay: {install: {accept: [{ge: 3}]}}\n":                              "underlay.install.accept[0].prefix: missing",
		head + "underlay: {install: {accept: [{prefix: 10.0.0.1/8}]}}\n":                 "write 10.0.0.0/8",
		head + "underlay: {install: {accept: [{prefix: 10.0.0.0/8, ge: 33}]}}\n":         "accept[0].ge: 33 is no length within 10.0.0.0/8; use 8 to 32",
		head + "underlay: {install: {accept: [{prefix: 10.0.0.0/8, ge: 24, le: 16}]}}\n": "accept[0].le: 16 is no length within 10.0.0.0/8; use 24 to 32",
		head + "underlay: {install: {source: [192.0.2.1, 192.0.2.2]}}\n":                 "source[1]: 192.0.2.2 is the second",
		head + "underlay: {install: {source: [fe80::1]}}\n":                              "is no source address",
		head + "underlay: {announce: {prefixes: [192.0.2.1/24]}}\n":                      "write 192.0.2.0/24",
		head + "underlay: {announce: {prefixes: [fe80::/64]}}\n":                         "no prefix to announce",
		head + "underlay: {announce: {prefixes: [192.0.2.1, 192.0.2.1/32]}}\n":           "prefixes[1]: 192.0.2.1/32 is given twice",
		// Nobody gets it, or sends any.
		reflector + "underlay:\n  announce:\n    vtep: true\n":                         "f.yaml:7:11: underlay.announce.vtep: no neighbour takes plain unicast; give the one that routes for this node `families: [evpn, ipv4]`",
		reflector + "underlay:\n  install: {enabled: true}\n":                          "f.yaml:6:22: underlay.install.enabled: no neighbour takes plain unicast",
		reflector + "underlay: {announce: {prefixes: [2001:db8::/64]}}\n":              "underlay.announce.prefixes[0]: no neighbour takes plain unicast",
		router + "underlay: {announce: {prefixes: [192.0.2.0/24, 2001:db8::/64]}}\n":   "underlay.announce.prefixes[1]: no neighbour takes plain IPv6 unicast; give the one that routes for this node `families: [evpn, ipv6]`",
		router + "fabric: {vtep: '2001:db8::7'}\nunderlay: {announce: {vtep: true}}\n": "underlay.announce.vtep: no neighbour takes plain IPv6 unicast",
		router6 + "fabric: {vtep: 192.0.2.7}\nunderlay: {announce: {vtep: true}}\n":    "underlay.announce.vtep: no neighbour takes plain IPv4 unicast",
		router + "roles: none\nunderlay: {install: {enabled: true}}\n":                 "underlay: a node with `roles: none` has no part in the underlay; use `roles: auto`",
		neighbor("{interface: a/b}"):                                                   "interface: \"a/b\" is no name",
		neighbor("{interface: eth1, address: 192.0.2.1}"):                              "address: interface is given too",
		neighbor("{interface: eth1, localAddress: 192.0.2.1}"):                         "localAddress: interface is given",
		neighbor("{interface: eth1, asn: 2, multihopTTL: 2}"):                          "multihopTTL: interface is given",
		neighbor("{interface: eth1, bfd: {enabled: true}}"):                            "bfd.enabled: interface is given",
		neighbor("{interface: eth1}, {interface: eth1}"):                               "neighbors[1].interface: eth1 is already neighbors[0]",
		neighbor("{address: 192.0.2.1, asn: 3, external: true}"):                       "external: asn is given too",
		neighbor("{address: 192.0.2.1, families: [ipv4, ipv4]}"):                       "families[1]: ipv4 is given twice",
		neighbor("{address: 192.0.2.1, families: [ipv6]}"):                             "families[0]: IPv6 prefixes have no next hop",
		neighbor("{address: 192.0.2.1, families: [ospf]}"):                             "is not allowed; use evpn, ipv4, ipv6",
	} {
		if _, err := Parse("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s%v\nwant %s", text, err, want)
		}
	}
}
