package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/configfile"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// maxPassword is the longest TCP-MD5 key that Linux takes (TCP_MD5SIG_MAXKEYLEN).
const maxPassword = 80

// rules are those of sluiced's file.
type rules struct {
	*configfile.Checker
	checks Checks
}

// validate checks the rules that one value alone does not show.
func (check rules) validate(c *Config) {
	check.validateOVN(&c.OVN)
	check.validateBGP(&c.BGP, c.Roles != RoleNone)
	check.validateUnderlay(c)
	check.validateFabric(&c.Fabric)
	check.validateEVPN(&c.EVPN, &c.Dataplane.Sizes, c.Path)
	check.validateExposure(c)
	check.validateMetadata(c)
	if l := c.LoadBalancing; l.Enabled && !l.Clients && c.OVN.NB == "" {
		check.FailAt("loadBalancing.enabled", "load balancers of routers are read from the Northbound database; set ovn.nb, or loadBalancing.clients for what VMs send")
	}
	check.validateSizes(&c.Dataplane.Sizes)
	check.validatePaths(c)
	if c.HTTP.Listen != "" {
		check.ListenAddress("http.listen", c.HTTP.Listen)
	}
	if c.HTTP.WebConfig != "" {
		check.Absolute("http.webConfig", c.HTTP.WebConfig)
	}
}

func (check rules) validatePaths(c *Config) {
	for _, p := range []struct{ key, path string }{
		{"dataplane.bpffs", c.Dataplane.BPFFS},
		{"ovs.runDir", c.OVS.RunDir},
		{"stateDir", c.StateDir},
	} {
		check.Absolute(p.key, p.path)
	}
	check.Socket("admin.socket", c.Admin.Socket)
}

func (check rules) validateOVN(o *OVN) {
	if o.SB != "" {
		check.endpoints("ovn.sb", o.SB)
	}
	if o.NB != "" {
		check.endpoints("ovn.nb", o.NB)
	}
	check.endpoints("ovn.vswitch", o.VSwitch)
	files := 0
	for _, f := range []struct{ key, path string }{
		{"ovn.tls.privateKey", o.TLS.PrivateKey},
		{"ovn.tls.certificate", o.TLS.Certificate},
		{"ovn.tls.caCert", o.TLS.CACert},
	} {
		if f.path != "" {
			files++
			check.Absolute(f.key, f.path)
		}
	}
	if files != 0 && files != 3 {
		check.FailAt("ovn.tls", "give privateKey, certificate and caCert, or none of them")
	}
}

func (check rules) endpoints(key, list string) {
	for e := range strings.SplitSeq(list, ",") {
		if err := checkEndpoint(strings.TrimSpace(e)); err != nil {
			check.FailAt(key, "%v", err)
		}
	}
}

func checkEndpoint(e string) error {
	scheme, rest, _ := strings.Cut(e, ":")
	switch scheme {
	case "unix":
		if filepath.IsAbs(rest) {
			return nil
		}
	case "tcp", "ssl":
		host, port, err := net.SplitHostPort(rest)
		if n, perr := strconv.ParseUint(port, 10, 16); err == nil && host != "" && perr == nil && n > 0 {
			return nil
		}
	}
	return fmt.Errorf("%q is not a database endpoint; write unix:/path, tcp:HOST:PORT or ssl:HOST:PORT, an IPv6 host in brackets", e)
}

func (check rules) validateFabric(f *Fabric) {
	if f.Port == 0 {
		check.FailAt("fabric.port", "0 is no UDP port; the port of VXLAN is 4789")
	}
	if a := f.VTEP; a.IsValid() && !isUnicast(a) {
		check.FailAt("fabric.vtep", "%s cannot be a tunnel address; use a global address of this node", a)
	}
	if f.MTU != 0 && f.MTU < 1280 {
		check.FailAt("fabric.mtu", "%d is too small; use 0 to find it, or 1280 and more", f.MTU)
	}
	if !isStationMAC(f.RouterMAC) && !f.RouterMAC.IsZero() {
		check.FailAt("fabric.routerMAC", "%s is a group address; its first byte has to be even", f.RouterMAC)
	}
	if f.NextHopMAC.IsZero() || !isStationMAC(f.NextHopMAC) {
		check.FailAt("fabric.nextHopMAC", "%s is not a station's address; remove the key for %s", f.NextHopMAC, DefaultNextHopMAC)
	}
	if f.NextHopMAC == f.RouterMAC {
		check.FailAt("fabric.nextHopMAC", "is the same as routerMAC; the two have to differ")
	}
	families := map[int]netip.Addr{}
	for i, a := range f.ICMPSource {
		key := fmt.Sprintf("fabric.icmpSource[%d]", i)
		if !isUnicast(a) {
			check.FailAt(key, "%s cannot be the source of a packet; use a unicast address", addrText(a))
		} else if first, dup := families[a.BitLen()]; dup {
			check.FailAt(key, "%s is the second address of its family after %s; keep one", a, first)
		} else {
			families[a.BitLen()] = a
		}
	}
	for network, hops := range f.NextHops {
		for i, a := range hops {
			// A link-local next hop is allowed: routers use fe80::1.
			if !a.IsValid() || a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a.Zone() != "" {
				check.FailAt(fmt.Sprintf("fabric.nextHops.%s[%d]", network, i), "%s cannot be a next hop; use a unicast address without a zone", addrText(a))
			}
		}
	}
	for i, a := range f.TrustedVTEPs {
		switch {
		case !a.IsValid():
			check.FailAt(fmt.Sprintf("fabric.trustedVTEPs[%d]", i), "no value; write an address, or remove the entry")
		case a.IsUnspecified() || a.IsMulticast() || a.IsLoopback() || a.Zone() != "":
			check.FailAt(fmt.Sprintf("fabric.trustedVTEPs[%d]", i), "%s cannot be a tunnel endpoint; use a unicast address without a zone", addrText(a))
		}
	}
}

func (check rules) validateEVPN(e *EVPN, s *Sizes, path Path) {
	if e.MaxVRFs == 0 || e.MaxVRFs > 65535 {
		check.FailAt("evpn.maxVRFs", "%d is not possible; use 1 to 65535 (a route distinguisher numbers VRFs in 16 bits)", e.MaxVRFs)
	} else if e.MaxVRFs > s.VRFs {
		check.FailAt("evpn.maxVRFs", "%d is more than dataplane.sizes.vrfs (%d); raise that or lower this", e.MaxVRFs, s.VRFs)
	}
	for vni, v := range e.VRFs {
		check.validateFilter(fmt.Sprintf("evpn.vrfs.%d.importFilter", vni), v.ImportFilter)
		if vni == 0 || vni > intent.MaxVNI {
			check.FailAt(fmt.Sprintf("evpn.vrfs.%d", vni), "not a VNI; use 1 to %d", intent.MaxVNI)
		}
		if path == PathKernel && v.Path != "" && v.Path != PathKernel {
			check.FailAt(fmt.Sprintf("evpn.vrfs.%d.path", vni), "%s is not possible with `path: kernel`, which is for the whole node; use `path: auto`, and kernel for single VRFs", v.Path)
		}
	}
}

func (check rules) validateSizes(s *Sizes) {
	const limit = 1 << 26
	for _, n := range []struct {
		key string
		n   uint32
	}{
		{"vrfs", s.VRFs}, {"gateways", s.Gateways}, {"served", s.Served}, {"hosts", s.Hosts},
		{"prefixes", s.Prefixes}, {"nextHops", s.NextHops}, {"vteps", s.VTEPs},
		{"vips", s.VIPs}, {"backends", s.Backends}, {"sessionEntries", s.SessionEntries},
	} {
		if n.n == 0 || n.n > limit {
			check.FailAt("dataplane.sizes."+n.key, "%d is not possible; use 1 to %d", n.n, limit)
		}
	}
}

func isStationMAC(m intent.MAC) bool { return m[0]&1 == 0 }

func isUnicast(a netip.Addr) bool {
	return a.IsValid() && a.Zone() == "" && !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() &&
		!a.IsLinkLocalUnicast() && a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

func addrText(a netip.Addr) string {
	if !a.IsValid() {
		return "an empty value"
	}
	return a.String()
}
