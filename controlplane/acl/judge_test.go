package acl

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
)

func redirect(protocol uint8, from, to string) Redirect {
	return Redirect{protocol, netip.MustParseAddrPort(from), netip.MustParseAddrPort(to)}
}

var (
	web4  = redirect(6, "10.9.0.1:80", "10.0.0.11:8080")
	web6  = redirect(6, "[2001:db8:9::1]:80", "[2001:db8::11]:8080")
	dns4  = redirect(17, "10.9.0.1:53", "10.0.0.11:53")
	sctp6 = redirect(132, "[2001:db8:9::1]:80", "[2001:db8::11]:80")
	any4  = redirect(6, "10.9.0.1:0", "10.0.0.11:0") // of all ports
)

// Which redirects ACLs may notice.
func TestDiffers(t *testing.T) {
	const allow, drop, stateless = "allow-related", "drop", "allow-stateless"
	rule := func(priority int, action, match string) Rule {
		return Rule{Priority: priority, Action: action, Match: match}
	}
	tier := func(n int, r Rule) Rule { r.Tier = n; return r }
	late := func(r Rule) Rule { r.AfterLB = true; return r }
	all := []Redirect{web4, web6, dns4, sctp6, any4}
	four := []Redirect{web4, dns4, any4}
	neutron := rule(1, drop, "inport == @pg && ip")
	for name, tt := range map[string]struct {
		drop  bool
		rules []Rule
		want  []Redirect // those that differ
	}{
		"none":                                      {},
		"none, and all is dropped":                  {drop: true},
		"Neutron's default group":                   {rules: []Rule{neutron, rule(2, allow, "inport == @pg && ip4"), rule(2, allow, "inport == @pg && ip6")}},
		"a source":                                  {rules: []Rule{neutron, rule(2, allow, "inport == @pg && ip4 && ip4.src == 10.0.0.5 && tcp.src == 1024")}},
		"a MAC address":                             {rules: []Rule{neutron, rule(2, allow, "eth.src == fa:16:3e:00:00:05")}},
		"an address of neither":                     {rules: []Rule{rule(2, drop, "ip4.dst == 192.0.2.0/24")}},
		"an address of both":                        {rules: []Rule{rule(2, drop, "ip4.dst == 10.0.0.0/8")}},
		"a port of neither":                         {rules: []Rule{rule(2, drop, "tcp.dst == 25")}, want: nil},
		"a port of all":                             {rules: []Rule{rule(2, drop, "tcp.dst < 10000")}},
		"the VIP's address":                         {rules: []Rule{rule(2, drop, "ip4.dst == 10.9.0.0/16")}, want: four},
		"the backend's address":                     {rules: []Rule{neutron, rule(2, allow, "inport == @pg && ip4.dst == 10.0.0.0/24")}, want: four},
		"all but the VIP's address":                 {rules: []Rule{rule(2, "reject", "ip4.dst != 10.9.0.1")}, want: four},
		"the VIP's port":                            {rules: []Rule{rule(2, drop, "tcp.dst == 80")}, want: []Redirect{web4, web6}},
		"the VIP's port, of UDP":                    {rules: []Rule{rule(2, drop, "udp.dst == 53")}},
		"the VIP's port, of SCTP":                   {rules: []Rule{rule(2, drop, "sctp.dst == 80")}},
		"the backend's port":                        {rules: []Rule{rule(2, drop, "!(tcp.dst == 80)")}, want: []Redirect{web4, web6}},
		"an address and any port":                   {rules: []Rule{rule(2, drop, "ip4.dst == 10.0.0.0/8 && tcp.dst == 25")}},
		"IPv6":                                      {rules: []Rule{rule(2, drop, "ip6.dst == 2001:db8:9::/48")}, want: []Redirect{web6, sctp6}},
		"another port's":                            {rules: []Rule{rule(2, drop, "inport == \"other\" && ip4.dst == 10.9.0.1")}},
		"another group's":                           {rules: []Rule{rule(2, drop, "inport == @other && ip4.dst == 10.9.0.1")}},
		"an address set":                            {rules: []Rule{rule(2, drop, "ip4.dst == $vips")}, want: four},
		"an address set of both":                    {rules: []Rule{rule(2, drop, "ip4.dst == {$vips, $backends}")}},
		"an address set to come":                    {rules: []Rule{rule(2, drop, "ip4.dst == $unheard")}, want: four},
		"an odd address set":                        {rules: []Rule{rule(2, drop, "ip4.dst == $odd")}, want: four},
		"what is not read":                          {rules: []Rule{rule(2, drop, "a new thing")}, want: all},
		"a MAC address's destination":               {rules: []Rule{rule(2, drop, "eth.dst == fa:16:3e:00:00:05")}, want: all},
		"new connections":                           {rules: []Rule{neutron, rule(2, allow, "inport == @pg && ct.new")}},
		"new ones to the VIP":                       {rules: []Rule{neutron, rule(2, allow, "ct.new && ip4.dst == 10.9.0.1"), rule(2, allow, "ct.est && ip4.dst == 10.0.0.11")}, want: four},
		"known ones to both":                        {rules: []Rule{neutron, rule(2, allow, "ct.est && ip4.dst == {10.9.0.1, 10.0.0.11}")}},
		"known ones to the VIP":                     {rules: []Rule{neutron, rule(2, allow, "ct.est && ip4.dst == 10.9.0.1")}, want: four},
		"what conntrack has noted":                  {rules: []Rule{rule(2, drop, "ct_mark.natted == 1")}, want: all},
		"a source, and the VIP":                     {rules: []Rule{neutron, rule(2, allow, "ip4.src == 10.0.0.5 && ip4.dst == 10.9.0.1")}, want: four},
		"both are allowed apart":                    {rules: []Rule{neutron, rule(2, allow, "ip4.dst == 10.9.0.1"), rule(3, "allow", "ip4.dst == 10.0.0.11")}},
		"both are allowed, one not from everywhere": {rules: []Rule{neutron, rule(2, allow, "ip4.dst == 10.9.0.1"), rule(3, "allow", "ip4.dst == 10.0.0.11 && ip4.src == 10.0.0.5")}, want: four},
		"both are dropped apart":                    {rules: []Rule{rule(2, drop, "ip4.dst == 10.9.0.1"), rule(3, drop, "ip4.dst == 10.0.0.11")}},
		"dropped and rejected":                      {rules: []Rule{rule(2, drop, "ip4.dst == 10.9.0.1"), rule(3, "reject", "ip4.dst == 10.0.0.11")}, want: four},
		"dropped by default":                        {drop: true, rules: []Rule{rule(3, drop, "ip4.dst == 10.0.0.11")}},
		"allowed by default":                        {rules: []Rule{rule(3, allow, "ip4.dst == 10.0.0.11")}},
		"one is allowed, one dropped by default":    {drop: true, rules: []Rule{rule(3, allow, "ip4.dst == 10.0.0.11")}, want: four},
		"a lower one that never counts":             {rules: []Rule{rule(2, drop, "ip4.dst == 10.9.0.1"), rule(3, allow, "ip4")}},
		"a higher one that may count":               {rules: []Rule{rule(2, drop, "ip4.dst == 10.9.0.1"), rule(3, allow, "ip4.src == 10.0.0.5")}, want: four},
		"one of two of one priority":                {rules: []Rule{rule(2, drop, "ip4.dst == 10.9.0.1"), rule(2, allow, "ip4")}, want: four},
		"two that disagree of all":                  {rules: []Rule{rule(2, drop, "ip4"), rule(2, allow, "ip4"), rule(1, drop, "ip4.dst == 10.9.0.1")}},
		"an action that is new":                     {rules: []Rule{rule(2, "mirror", "ip4")}},
		"an action that is new, for one":            {rules: []Rule{rule(2, "mirror", "ip4.dst == 10.9.0.1")}, want: four},
		"a later tier":                              {rules: []Rule{tier(0, rule(1, allow, "ip4")), tier(1, rule(9, drop, "ip4.dst == 10.9.0.1"))}},
		"a later tier after a pass":                 {rules: []Rule{tier(0, rule(2, "pass", "ip4")), tier(0, rule(1, allow, "ip4")), tier(1, rule(9, drop, "ip4.dst == 10.9.0.1"))}, want: four},
		"one passes to the same":                    {rules: []Rule{tier(0, rule(2, "pass", "ip4.dst == 10.9.0.1")), tier(0, rule(1, allow, "ip4")), tier(1, rule(9, allow, "ip4"))}},
		"one passes to another":                     {rules: []Rule{tier(0, rule(2, "pass", "ip4.dst == 10.9.0.1")), tier(0, rule(1, allow, "ip4")), tier(1, rule(9, drop, "ip4"))}, want: four},
		"after load balancing":                      {rules: []Rule{late(rule(2, drop, "ip4.dst == 10.9.0.1"))}},
		"without conntrack":                         {rules: []Rule{rule(1, drop, "ip"), rule(2, stateless, "ip4")}},
		"without conntrack to the VIP":              {rules: []Rule{rule(1, allow, "ip4"), rule(2, stateless, "ip4.dst == 10.9.0.1")}, want: four},
		"without conntrack to the VIP, later":       {rules: []Rule{rule(1, allow, "ip4"), late(rule(2, stateless, "ip4.dst == 10.9.0.1"))}, want: four},
		"without conntrack, and one is asked":       {rules: []Rule{rule(3, allow, "ip4.dst == 10.9.0.1"), rule(2, stateless, "ip4")}, want: four},
		"without conntrack, of others":              {rules: []Rule{rule(3, allow, "ip4.dst == 10.9.0.1"), rule(2, stateless, "icmp4")}},
	} {
		t.Run(name, func(t *testing.T) {
			var b Book
			for range 2 {
				j := b.Judge(tt.rules, "vm", map[string]bool{"pg": true}, setsOfVIPs, tt.drop)
				for _, r := range all {
					rule, got := j.Differs(r)
					if got != slices.Contains(tt.want, r) || got != (rule != Rule{}) {
						t.Errorf("%+v: %t (%s)", r, got, rule)
					}
				}
				if len(tt.want) > 0 && b.Identity(tt.rules, "vm", nil) == "" {
					t.Error("no rule is said to look at destinations")
				}
				slices.Reverse(tt.rules)
			}
		})
	}
}

func setsOfVIPs(name string) ([]string, bool) {
	s, ok := map[string][]string{"vips": {"10.9.0.0/16", "2001:db8:9::1"}, "backends": {"10.0.0.10", "10.0.0.11"}, "odd": {"what"}}[name]
	return s, ok
}

// The rule that is named is the first one that may differ, and work is what depends on the
// destinations.
func TestDiffersBy(t *testing.T) {
	rules := []Rule{{Priority: 1, Action: "drop", Match: "ip4.dst == 10.9.0.1"}, {Priority: 3, Action: "drop", Match: "tcp.dst == 25"}, {Priority: 2, Action: "drop", Match: "tcp.dst == 80"}, {Priority: 4, Action: "allow", Match: "udp"}}
	var b Book
	j := b.Judge(rules, "vm", nil, setsOfVIPs, false)
	if r, _ := j.Differs(web4); r != rules[2] || r.String() != `ACL 2 drop "tcp.dst == 80"` {
		t.Errorf("%s", r)
	}
	if _, differs := j.Differs(dns4); differs || j.Work != 4 {
		t.Errorf("%t, %d", differs, j.Work)
	}
}

// Ports have one identity as far as rules say the same of them.
func TestIdentity(t *testing.T) {
	var b Book
	blind := []Rule{{Match: "inport == @pg && ip4.src == 10.0.0.0/8"}, {Match: "tcp && ct.new"}, {Match: "ip4.dst == 10.0.0.1", AfterLB: true}}
	if id := b.Identity(blind, "vm", nil); id != "" {
		t.Errorf("%q", id)
	}
	one := []Rule{{Match: "ip4.dst == 10.0.0.1"}}
	if b.Identity(one, "vm", nil) == "" || b.Identity(one, "vm", nil) != b.Identity(one, "other", nil) {
		t.Error("the port's name counts, and nobody asks for it")
	}
	if b.Identity(one, "vm", nil) == b.Identity(one, "vm", map[string]bool{"pg": true}) {
		t.Error("groups do not count")
	}
	named := append(one, Rule{Match: `ip4 && (tcp || !(inport == {"vm", "other"}))`})
	if b.Identity(named, "vm", nil) == b.Identity(named, "other", nil) {
		t.Error("the port's name does not count")
	}
	if b.Identity([]Rule{{Match: "?"}}, "vm", nil) == "" || b.Identity([]Rule{{Match: "udp.dst == 1", Action: "allow-stateless", AfterLB: true}}, "vm", nil) == "" {
		t.Error("a rule that may look at destinations is not seen")
	}
}

// TestDiffersSoundly: what is said not to differ does not, for any sender that rules may tell
// apart; and that is most of it.
func TestDiffersSoundly(t *testing.T) {
	var alike, told int
	for seed := range 4000 {
		r := rand.New(rand.NewPCG(uint64(seed), 1))
		rules := randomRules(r)
		var b Book
		for _, way := range []Redirect{web4, dns4, redirect(6, "10.9.0.1:443", "10.0.0.12:443")} {
			drop := seed%2 == 0
			_, differs := b.Judge(rules, "vm", map[string]bool{"pg": true}, setsOfVIPs, drop).Differs(way)
			same := true
			for _, src := range []string{"10.0.0.5", "10.0.0.6", "10.1.0.5"} {
				p := Packet{Port: "vm", Groups: map[string]bool{"pg": true}, Src: netip.MustParseAddr(src), Protocol: way.Protocol, Dst: way.From.Addr(), DstPort: way.From.Port()}
				q := p
				q.Dst, q.DstPort = way.To.Addr(), way.To.Port()
				same = same && fates(rules, p, drop) == fates(rules, q, drop)
			}
			if !same && !differs {
				t.Fatalf("seed %d: %+v\n%+v is said to be the same", seed, rules, way)
			}
			if same {
				alike++
				told += map[bool]int{false: 1}[differs]
			}
		}
	}
	if told < alike*8/10 {
		t.Errorf("of %d that are the same %d are said to be", alike, told)
	}
	t.Logf("of %d that are the same %d are said to be", alike, told)
}

// fates are what may become of a packet, written down without a thought of speed.
func fates(rules []Rule, p Packet, drop bool) string {
	matches := func(r Rule) bool {
		e, _ := Parse(r.Match)
		return e.Eval(p, setsOfVIPs) == Yes
	}
	stateless := slices.ContainsFunc(rules, func(r Rule) bool { return r.Action == "allow-stateless" && matches(r) })
	first := slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.AfterLB || !matches(r) })
	slices.SortFunc(first, func(x, y Rule) int { return cmp.Or(cmp.Compare(x.Tier, y.Tier), -cmp.Compare(x.Priority, y.Priority)) })
	var from func(tier int) []string
	from = func(tier int) (out []string) {
		at := slices.IndexFunc(first, func(r Rule) bool { return r.Tier >= tier })
		if at < 0 {
			return []string{map[bool]string{false: "allow", true: "drop"}[drop]}
		}
		for _, r := range first[at:] {
			switch {
			case r.Tier != first[at].Tier || r.Priority != first[at].Priority:
			case r.Action == "pass":
				out = append(out, from(r.Tier+1)...)
			case r.Action == "allow-related" || r.Action == "allow-stateless":
				out = append(out, "allow")
			default:
				out = append(out, r.Action)
			}
		}
		return out
	}
	list := from(0)
	slices.Sort(list)
	return fmt.Sprint(stateless, slices.Compact(list))
}

func randomRules(r *rand.Rand) (out []Rule) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	for range 1 + r.IntN(5) {
		one := func() string {
			return pick("ip4", "tcp", "udp", "inport == @pg", `inport == "other"`, "ip4.src == 10.0.0.5", "ip4.src == 10.0.0.0/24", "ip4.dst == 10.9.0.1", "ip4.dst != 10.0.0.11",
				"ip4.dst == 10.0.0.0/24", "ip4.dst == $vips", "ip4.dst == {$backends, 10.9.0.0/16}", "tcp.dst == 80", "tcp.dst >= 443", "udp.dst != 53", "80 <= tcp.dst <= 8080")
		}
		match := one()
		switch r.IntN(4) {
		case 0:
			match += " && " + one()
		case 1:
			match = "!(" + match + " || " + one() + ")"
		case 2:
			match = "(" + match + " && " + one() + ") || " + one()
		}
		out = append(out, Rule{Priority: r.IntN(4), Tier: r.IntN(3) / 2, Action: pick("allow", "allow-related", "allow-related", "drop", "drop", "reject", "pass", "allow-stateless"), Match: match, AfterLB: r.IntN(12) == 0})
	}
	return out
}
