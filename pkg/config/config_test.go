package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ovn-sluice/sluice/pkg/configfile"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

const smallest = "bgp:\n  asn: 64512\n  neighbors:\n    - address: 192.0.2.1\n"

func TestSmallestFile(t *testing.T) {
	for name, text := range map[string]string{
		"block": smallest,
		"flow":  "bgp: {asn: 64512, neighbors: [{address: 192.0.2.1}]}",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := Parse("f.yaml", []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			n := c.BGP.Neighbors[0]
			if n.ASN != 64512 || n.Port != 179 || n.HoldTime.Duration != 90*time.Second || n.ConnectRetry.Duration != 5*time.Second || n.Keepalive.Duration != 30*time.Second {
				t.Errorf("neighbor defaults: %+v", n)
			}
			if c.Fabric.NextHopMAC != DefaultNextHopMAC || c.Roles != RoleAuto || !c.BGP.GracefulRestart.Enabled {
				t.Errorf("defaults: %+v", c)
			}
		})
	}
}

const full = `
roles: gateway
ovn:
  sb: "tcp:192.0.2.10:6642,ssl:[2001:db8::10]:6642"
  nb: unix:/run/ovn/ovnnb_db.sock
  systemID: 1234
  inactivityProbe: 0s
  tls: {privateKey: /etc/k.pem, certificate: /etc/c.pem, caCert: /etc/ca.pem}
bgp:
  asn: 4200000000
  routerID: 192.0.2.7
  listen: "[::]:179"
  neighbors:
    - {address: "2001:db8::1", asn: 65001, password: hush, multihopTTL: 3, passive: true, bfd: {enabled: true, minTx: 50ms, multihop: true, minTTL: 252, strict: true}}
    - {address: "fe80::1%eth0", gtsm: 1, holdTime: 9s, keepalive: 2s, localAddress: "fe80::2%eth0"}
  longLived: {enabled: true, time: 10m}
fabric:
  vtep: 2001:db8::7
  df: set
  udpChecksum: on
  routerMAC: 02:00:00:00:00:07
  nextHops: {physnet1: [192.0.2.254, "fe80::1"]}
  icmpSource: [192.0.2.254, "2001:db8::254"]
  trustedVTEPs: [192.0.2.9, "2001:db8:1::5"]
evpn:
  announce: hosts
  natUnknown: hold
  vrfs:
    1001: {import: ["65000:1", "192.0.2.1:7"], export: ["65000:1"]}
    1002:
      maxPrefixes: 1000
      importFilter:
        - {action: deny, prefix: 10.66.0.0/16, le: 32}
        - {action: permit, prefix: "fd00::/8", ge: 48, le: 64}
dataplane: {sizes: {hosts: 2000000}}
log: {level: debug, format: json}
http: {listen: "", pprof: true}
`

func TestFullFile(t *testing.T) {
	c, err := Parse("f.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	rt, _ := intent.ParseRouteTarget("192.0.2.1:7")
	if got := c.EVPN.VRFs[1001].Import[1]; got != rt {
		t.Errorf("import route target: %s", got)
	}
	want := []netip.Addr{netip.MustParseAddr("192.0.2.9"), netip.MustParseAddr("2001:db8:1::5")}
	if diff := cmp.Diff(want, c.Fabric.TrustedVTEPs, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Error(diff)
	}
	if c.OVN.SystemID != "1234" || c.OVN.InactivityProbe.Duration != 0 || c.Fabric.UDPChecksum != ChecksumOn {
		t.Errorf("%+v", c)
	}
	if c.BGP.Neighbors[1].ASN != 4200000000 || c.BGP.Neighbors[0].Password.Reveal() != "hush" {
		t.Errorf("%+v", c.BGP.Neighbors)
	}
	if b := c.BGP.Neighbors[0].BFD; b != (BFD{Enabled: true, MinTx: configfile.Duration{Duration: 50 * time.Millisecond}, MinRx: configfile.Duration{Duration: 300 * time.Millisecond},
		Multiplier: 3, Multihop: true, MinTTL: 252, Strict: true}) {
		t.Errorf("%+v", b)
	}
	if c.Dataplane.Sizes.Hosts != 2_000_000 || c.Dataplane.Sizes.Prefixes != 250_000 {
		t.Errorf("%+v", c.Dataplane.Sizes)
	}
}

// mistake is a file that is refused, and why.
type mistake struct {
	text string
	want []string // each has to be one whole line of the error
}

const head = smallest // 4 lines

var mistakes = map[string]mistake{
	"empty":          {"", []string{"f.yaml: bgp.asn: missing", "f.yaml: bgp.neighbors: missing"}},
	"unknown key":    {head + "  asnn: 3\n", []string{"f.yaml:5:3: bgp.asnn: unknown key; did you mean asn?"}},
	"enum":           {head + "roles: master\n", []string{`f.yaml:5:8: roles: "master" is not allowed; use auto, gateway, none`}},
	"section":        {head + "log: debug\n", []string{"f.yaml:5:6: log: want keys below (level, format)"}},
	"bfd times":      {head + "      bfd: {minTx: 5ms, minRx: 61s, multiplier: 0}\n", []string{"f.yaml:5:20: bgp.neighbors[0].bfd.minTx: 5ms does not fit; use 10ms to 1m", "f.yaml:5:32: bgp.neighbors[0].bfd.minRx: 1m1s does not fit; use 10ms to 1m", "f.yaml:5:49: bgp.neighbors[0].bfd.multiplier: 0 would declare every path lost; use 1 to 255"}},
	"bfd TTL":        {head + "      bfd: {minTTL: 254}\n", []string{"f.yaml:5:21: bgp.neighbors[0].bfd.minTTL: is for multihop; without it only packets with TTL 255 are accepted"}},
	"bfd key":        {head + "      bfd: {secret: x}\n", []string{"f.yaml:5:13: bgp.neighbors[0].bfd.secret: unknown key; in bgp.neighbors[0].bfd these are known: enabled, minTx, "}},
	"bfd far":        {"bgp:\n  asn: 1\n  neighbors: [{address: fe80::1%eth0, bfd: {multihop: true}}]\n", []string{"f.yaml:3:55: bgp.neighbors[0].bfd.multihop: fe80::1%eth0 is on a link, and never several hops away; remove the key"}},
	"endpoint":       {head + "ovn: {sb: \"tcp:host\"}\n", []string{`f.yaml:5:11: ovn.sb: "tcp:host" is not a database endpoint`}},
	"half tls":       {head + "ovn: {tls: {caCert: /ca.pem}}\n", []string{"f.yaml:5:12: ovn.tls: give privateKey, certificate and caCert"}},
	"same neighbor":  {head + "    - address: 192.0.2.1\n", []string{"f.yaml:5:16: bgp.neighbors[1].address: 192.0.2.1 is already neighbors[0]"}},
	"mapped is same": {head + "    - address: ::ffff:192.0.2.1\n", []string{"f.yaml:5:16: bgp.neighbors[1].address: 192.0.2.1 is already neighbors[0]"}},
	"no zone":        {head + "    - address: fe80::1\n", []string{"f.yaml:5:16: bgp.neighbors[1].address: fe80::1: a link-local address needs"}},
	"twins":          {head + "    - address: fe80::1%eth0\n    - address: fe80::1%eth1\n      password: a\n", []string{"f.yaml:7:17: bgp.neighbors[2].password: fe80::1%eth1 has the address of neighbors[1] on another interface, and another password"}},
	"passive":        {head + "      passive: true\n", []string{"f.yaml:5:16: bgp.neighbors[0].passive: needs bgp.listen"}},
	"ibgp multihop":  {head + "      multihopTTL: 4\n", []string{"f.yaml:5:20: bgp.neighbors[0].multihopTTL: is for eBGP"}},
	"two passwords":  {head + "      password: a\n      passwordFile: /p\n", []string{"f.yaml:6:21: bgp.neighbors[0].passwordFile: password is given too"}},
	"redacted":       {head + "      password: \"[redacted]\"\n", []string{"f.yaml:5:17: bgp.neighbors[0].password: this is what a printed"}},
	"vni 0":          {head + "evpn: {vrfs: {0: {}}}\n", []string{"f.yaml:5:15: evpn.vrfs.0: not a VNI"}},
	"vni large":      {head + "evpn: {vrfs: {16777216: {}}}\n", []string{"f.yaml:5:15: evpn.vrfs.16777216: not a VNI"}},
	"filter action":  {head + "evpn: {vrfs: {1: {importFilter: [{prefix: 10.0.0.0/8}]}}}\n", []string{"f.yaml:5:34: evpn.vrfs.1.importFilter[0].action: missing"}},
	"filter word":    {head + "evpn: {vrfs: {1: {importFilter: [{action: allow, prefix: 10.0.0.0/8}]}}}\n", []string{`f.yaml:5:43: evpn.vrfs.1.importFilter[0].action: "allow" is not allowed; use permit, deny`}},
	"filter prefix":  {head + "evpn: {vrfs: {1: {importFilter: [{action: deny}]}}}\n", []string{"f.yaml:5:34: evpn.vrfs.1.importFilter[0].prefix: missing"}},
	"filter bits":    {head + "evpn: {vrfs: {1: {importFilter: [{action: deny, prefix: 10.1.0.0/8}]}}}\n", []string{"f.yaml:5:57: evpn.vrfs.1.importFilter[0].prefix: 10.1.0.0/8 has bits"}},
	"filter ge":      {head + "evpn: {vrfs: {1: {importFilter: [{action: deny, prefix: 10.0.0.0/8, ge: 4}]}}}\n", []string{"f.yaml:5:73: evpn.vrfs.1.importFilter[0].ge: 4 is not possible; use 8 to 32"}},
	"filter le":      {head + "evpn: {vrfs: {1: {importFilter: [{action: deny, prefix: \"fd00::/8\", ge: 64, le: 48}]}}}\n", []string{"f.yaml:5:81: evpn.vrfs.1.importFilter[0].le: 48 is not possible; use 64 to 128"}},
	"route target":   {head + "evpn: {vrfs: {1: {import: [\"70000:70000\"]}}}\n", []string{"f.yaml:5:28: evpn.vrfs.1.import[0]: route target 70000:70000"}},
	"group mac":      {head + "fabric: {routerMAC: 01:00:00:00:00:00}\n", []string{"f.yaml:5:21: fabric.routerMAC: 01:00:00:00:00:00 is a group address"}},
	"icmp sources":   {head + "fabric: {icmpSource: [192.0.2.1, 192.0.2.2]}\n", []string{"f.yaml:5:34: fabric.icmpSource[1]: 192.0.2.2 is the second"}},
	"vteps null":     {head + "fabric: {trustedVTEPs: [null]}\n", []string{"f.yaml:5:25: fabric.trustedVTEPs[0]: no value"}},
	"balancers":      {head + "loadBalancing: {enabled: true, clients: false}\n", []string{"f.yaml:5:26: loadBalancing.enabled: load balancers of routers are read from the Northbound database; set ovn.nb"}},
	"path":           {head + "path: fast\n", []string{`f.yaml:5:7: path: "fast" is not allowed; use auto, ebpf, kernel`}},
	"path of a VRF":  {head + "evpn: {vrfs: {7: {path: kernal}}}\n", []string{`f.yaml:5:25: evpn.vrfs.7.path: "kernal" is not allowed; use auto, ebpf, kernel`}},
	"whole node":     {head + "path: kernel\nevpn: {vrfs: {7: {path: ebpf}}}\n", []string{"f.yaml:6:25: evpn.vrfs.7.path: ebpf is not possible with `path: kernel`"}},
	"announce":       {head + "evpn: {vrfs: {7: {announce: no}}}\n", []string{`f.yaml:5:29: evpn.vrfs.7.announce: "no" is not allowed; use on, off`}},
	"dummy":          {head + "kernel: {dummy: perhaps}\n", []string{`f.yaml:5:17: kernel.dummy: "perhaps" is neither true nor false`}},
	"relative path":  {head + "stateDir: var\n", []string{`f.yaml:5:11: stateDir: "var" is not an absolute path`}},
	"listen name":    {head + "http: {listen: \"localhost:1\"}\n", []string{`f.yaml:5:16: http.listen: "localhost:1" is not an address`}},
	"vrfs over map":  {head + "evpn: {maxVRFs: 5000}\n", []string{"f.yaml:5:17: evpn.maxVRFs: 5000 is more than dataplane.sizes.vrfs (4096)"}},
	"several": {head + "roles: x\nlog: {level: y}\nfoo: 1\n", []string{
		`f.yaml:5:8: roles: "x"`, `f.yaml:6:14: log.level: "y"`, "f.yaml:7:1: foo: unknown key"}},
}

func TestMistakes(t *testing.T) {
	for name, tc := range mistakes {
		t.Run(name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(tc.text))
			var errs configfile.Errors
			if !errors.As(err, &errs) {
				t.Fatalf("want Errors, got %v", err)
			}
			for _, w := range tc.want {
				found := 0
				for line := range strings.SplitSeq(err.Error(), "\n") {
					if strings.HasPrefix(line, w) {
						found++
					}
				}
				if found != 1 {
					t.Errorf("%d times %q in:\n%v", found, w, err)
				}
			}
			if name != "empty" && len(errs) != len(tc.want) {
				t.Errorf("%d mistakes, want %d:\n%v", len(errs), len(tc.want), err)
			}
		})
	}
}

func TestRoleNoneNeedsNoBGP(t *testing.T) {
	if _, err := Parse("f.yaml", []byte("roles: none\n")); err != nil {
		t.Fatal(err)
	}
}

func TestEffectiveHidesSecretsAndReadsBack(t *testing.T) {
	c, err := Parse("f.yaml", []byte(full))
	if err != nil {
		t.Fatal(err)
	}
	b, err := c.Effective()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "hush") || !strings.Contains(string(b), "[redacted]") {
		t.Fatalf("secret in:\n%s", b)
	}
	again, err := Parse("effective.yaml", []byte(strings.ReplaceAll(string(b), "'[redacted]'", "hush")))
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	b2, err := again.Effective()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(b), string(b2)); diff != "" {
		t.Error(diff)
	}
}

func TestLoadAndPasswordFile(t *testing.T) {
	dir := t.TempDir()
	pw, file := filepath.Join(dir, "pw"), filepath.Join(dir, "sluiced.yaml")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(pw, "hush\r\nsecond line\n")
	write(file, smallest+"      passwordFile: "+pw+"\n")
	c, err := Load(file, Checks{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.BGP.Neighbors[0].ReadPassword(); err != nil || got != "hush" {
		t.Errorf("%q %v", got, err)
	}
	write(pw, "\n")
	if _, err := c.BGP.Neighbors[0].ReadPassword(); err == nil {
		t.Error("an empty password was accepted")
	}
	if _, err := Load(filepath.Join(dir, "none"), Checks{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(smallest))
	f.Add([]byte(full))
	f.Add([]byte("x: &a [*a]\n? [1, 2] : 3\n<<: {a: 1}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := Parse("fuzz.yaml", text)
		if err != nil {
			var errs configfile.Errors
			if !errors.As(err, &errs) || len(errs) == 0 {
				t.Fatalf("not Errors: %v", err)
			}
			return
		}
		for i := range c.BGP.Neighbors {
			c.BGP.Neighbors[i].Password = configfile.Secret{}
		}
		b, err := c.Effective()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse("effective.yaml", b)
		if err != nil {
			t.Fatalf("effective configuration is refused: %v\n%s", err, b)
		}
		b2, err := again.Effective()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(b), string(b2)); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestBGPListen(t *testing.T) {
	const file = "bgp: {asn: 64512, neighbors: [{address: 192.0.2.1}], listen: '%s'}"
	for given, want := range map[string]string{
		"":                   "",
		":179":               "[::]:179",
		"[::]:179":           "[::]:179",
		"0.0.0.0:1790":       "0.0.0.0:1790",
		"192.0.2.1:179":      "192.0.2.1:179",
		"[2001:db8::1]:179":  "[2001:db8::1]:179",
		"[::ffff:1.2.3.4]:1": "1.2.3.4:1",
	} {
		c, err := Parse("f.yaml", fmt.Appendf(nil, file, given))
		if err != nil {
			t.Errorf("%q: %v", given, err)
			continue
		}
		if c.BGP.Listen != want {
			t.Errorf("%q became %q, want %q", given, c.BGP.Listen, want)
		}
		if _, err := netip.ParseAddrPort(c.BGP.Listen); err != nil && want != "" {
			t.Errorf("%q passes and cannot be used: %v", given, err)
		}
	}
	for _, given := range []string{":0", "192.0.2.1:0", "192.0.2.1", "179", "localhost:179", "224.0.0.1:179", "[fe80::1%eth0]:179", ":99999", ":"} {
		_, err := Parse("f.yaml", fmt.Appendf(nil, file, given))
		if err == nil || !strings.Contains(err.Error(), "bgp.listen: ") || !strings.Contains(err.Error(), "179") {
			t.Errorf("%q: %v", given, err)
		}
	}
}

// An address written as IPv4 in IPv6 is the IPv4 address, wherever one is given.
func TestMappedAddresses(t *testing.T) {
	c, err := Parse("f.yaml", []byte(`
bgp: {asn: 64512, neighbors: [{address: "::ffff:192.0.2.1", localAddress: "::ffff:192.0.2.2"}]}
fabric:
  vtep: "::ffff:192.0.2.3"
  nextHops: {physnet1: ["::ffff:192.0.2.254"]}
  icmpSource: ["::ffff:192.0.2.4"]
  trustedVTEPs: ["::ffff:192.0.2.5"]
`))
	if err != nil {
		t.Fatal(err)
	}
	n, f := c.BGP.Neighbors[0], c.Fabric
	for _, a := range []netip.Addr{n.Address, n.LocalAddress, f.VTEP, f.NextHops["physnet1"][0], f.ICMPSource[0], f.TrustedVTEPs[0]} {
		if !a.Is4() {
			t.Errorf("%s is not the IPv4 address", a)
		}
	}
}
