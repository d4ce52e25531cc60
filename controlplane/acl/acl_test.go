package acl

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

var (
	four = Packet{Port: "vm", Groups: map[string]bool{"pg_a": true}, MAC: intent.MAC{0xfa, 0x16, 0x3e, 0, 0, 5},
		Src: netip.MustParseAddr("10.0.0.5"), Dst: netip.MustParseAddr("169.254.169.254"), Protocol: 6, DstPort: 80}
	six = Packet{Port: "vm", Groups: map[string]bool{"pg_a": true}, MAC: four.MAC,
		Dst: netip.MustParseAddr("fe80::a9fe:a9fe"), Protocol: 6, DstPort: 80}
)

func sets(name string) ([]string, bool) {
	s, ok := map[string][]string{
		"all4": {"0.0.0.0/0"}, "some": {"10.0.0.0/8", "2001:db8::/32"}, "meta": {"169.254.169.254"}, "none": {}, "odd": {"what", "10.1.0.0/16"},
	}[name]
	return s, ok
}

// What matches, as OVN has it, for a packet of IPv4 and one of IPv6.
func TestMatches(t *testing.T) {
	const y, n, u = Yes, No, Unknown
	for match, want := range map[string][2]Truth{
		// Neutron's.
		`inport == @pg_a && ip4`: {y, n},
		`inport == @pg_a && ip6`: {n, y},
		`inport == @pg_b && ip4`: {n, n},
		`inport == @pg_a && ip`:  {y, y},
		`inport == @pg_a && ip4 && ip4.dst == 0.0.0.0/0 && tcp && tcp.dst == 80`: {y, n},
		`inport == @pg_a && ip4 && tcp && tcp.dst >= 80 && tcp.dst <= 90`:        {y, n},
		`inport == @pg_a && ip4 && tcp && tcp.dst == 443`:                        {n, n},
		`inport == @pg_a && ip4 && udp && udp.dst == 80`:                         {n, n},
		`inport == @pg_a && ip4 && icmp4`:                                        {n, n},
		`inport == @pg_a && ip4 && ip4.dst == $pg_remote_ip4`:                    {u, n},
		`inport == @pg_a && ip6 && ip6.dst == fe80::/10`:                         {n, y},
		`inport == "vm" && ip4 && ip.proto == 6`:                                 {y, n},
		`inport == {"vm", "other"}`:                                              {y, y},
		`inport == {"another" "other"}`:                                          {n, n},
		`outport == @pg_a && ip4`:                                                {u, n},
		// ovn-kubernetes's.
		`(ip4.dst == {$meta, $none}) && inport == @pg_a`: {y, n},
		`ip4.dst == $some`:                {n, n},
		`ip4.src == $some`:                {y, n},
		`ip4.src == {$none, 10.0.0.0/24}`: {y, n},
		`ip4.dst == 169.254.0.0/16 && ip4.dst != {169.254.169.254/32}`:    {n, n},
		`(ip4 || ip6) && (arp || nd)`:                                     {n, n},
		`ip4.src != 10.0.0.0/8 || tcp.dst == {80, 443}`:                   {y, y},
		`((ip4.dst == 169.254.169.254 && tcp) || ip6) && inport == @pg_a`: {y, y},
		// The language.
		`1`: {y, y}, `0`: {n, n}, `!1`: {n, n}, `!!ip4`: {y, n}, `!ip4`: {n, y}, `!(ip4 && tcp)`: {n, y}, `!(ip4 || arp)`: {n, y},
		`80 == tcp.dst`: {y, y}, `70 <= tcp.dst < 80`: {n, n}, `70 <= tcp.dst <= 80`: {y, y}, `100 > tcp.dst > 79`: {y, y},
		`tcp.dst == 0x50`: {y, y}, `tcp.dst != {80, 443}`: {n, n}, `!(tcp.dst == {81, 443})`: {y, y}, `tcp.dst > {1, 2}`: {u, u},
		`eth.type == 0x800`: {y, n}, `eth.src == fa:16:3e:00:00:05`: {y, y}, `eth.src != FA:16:3E:00:00:05`: {n, n}, `eth.dst == fa:16:3e:00:00:01`: {u, u},
		// A field of a protocol holds for packets of it only, also turned round.
		`ip4.dst != 10.0.0.1`: {y, n}, `!(ip4.dst == 10.0.0.1)`: {y, n}, `udp.dst != 80`: {n, n}, `!(udp.dst == 80)`: {n, n},
		// What is not known.
		`ct.new`: {u, u}, `!ct.new`: {u, u}, `ct.new && udp`: {n, n}, `ct.new || tcp`: {y, y}, `tcp.src == 80`: {u, u}, `ip.ttl == 1`: {u, u}, `tcp.flags[1] == 1`: {u, u},
		`ip.dscp[0..5] == 3`: {u, u}, `is_chassis_resident("x")`: {u, u}, `ip4.src == $odd`: {u, n}, `ip4.src == $unheard`: {u, n}, `ip4.dst == 10.0.0.1/255.0.255.0`: {u, n},
		`ip6.src == fe80::1`: {n, u}, `ip4.dst == 5`: {u, n}, `some.new.field == 5`: {u, u}, `inport == 5`: {u, u}, `ip4.dst < 10.0.0.1`: {u, n},
	} {
		e, err := Parse(match)
		if err != nil {
			t.Errorf("%s: %v", match, err)
			continue
		}
		if got := [2]Truth{e.Eval(four, sets), e.Eval(six, sets)}; got != want {
			t.Errorf("%s: %v, want %v", match, got, want)
		}
	}
}

// What cannot be read is an error, and unknown.
func TestNoMatches(t *testing.T) {
	for _, match := range []string{
		"", "&&", "ip4 &&", "(ip4", "ip4)", "ip4 && tcp || udp", `inport == "vm`, `inport == "v\"m"`, "tcp.dst == ", "== 80", "5", "$set", "ip4.dst == ip4.src",
		"ip4 = 5", "tcp.dst == {80", "tcp.dst == {80, tcp}", "ip4.dst == -1", "ip4 ip6", "$ == ip4.dst", strings.Repeat("(", 200) + "ip4", strings.Repeat("!", 200) + "ip4", strings.Repeat("ip4 && ", 20000) + "ip4", "f(ip4) == 1 && {",
	} {
		e, err := Parse(match)
		if err == nil {
			t.Errorf("%.40q was read", match)
		}
		if got := e.Eval(four, sets); got != Unknown {
			t.Errorf("%.40q is %d", match, got)
		}
	}
}

func TestDecide(t *testing.T) {
	const allow, drop, yes, no, maybe = "allow-related", "drop", "ip4", "ip6", "ct.new"
	rule := func(tier, priority int, action, match string) Rule {
		return Rule{Tier: tier, Priority: priority, Action: action, Match: match}
	}
	late := func(r Rule) Rule { r.AfterLB = true; return r }
	for name, tt := range map[string]struct {
		drop  bool
		rules []Rule
		want  Truth
	}{
		"none":                            {want: Yes},
		"none, and it is dropped":         {drop: true, want: No},
		"Neutron's default group":         {rules: []Rule{rule(0, 1001, drop, "inport == @pg_a && ip"), rule(0, 1002, allow, "inport == @pg_a && ip4"), rule(0, 1002, allow, "inport == @pg_a && ip6")}, want: Yes},
		"a group without egress":          {rules: []Rule{rule(0, 1001, drop, "inport == @pg_a && ip"), rule(0, 1002, allow, "inport == @pg_a && ip6")}, want: No},
		"rejected":                        {rules: []Rule{rule(0, 5, "reject", yes)}, want: No},
		"the higher one counts":           {rules: []Rule{rule(0, 5, drop, yes), rule(0, 6, "allow-stateless", yes)}, want: Yes},
		"the higher one is another's":     {rules: []Rule{rule(0, 5, drop, yes), rule(0, 6, "allow", no)}, want: No},
		"the higher one is not known":     {rules: []Rule{rule(0, 5, drop, yes), rule(0, 6, allow, maybe)}, want: Unknown},
		"not known, and the same":         {rules: []Rule{rule(0, 5, drop, yes), rule(0, 6, drop, maybe)}, want: No},
		"not known, and lower":            {rules: []Rule{rule(0, 7, allow, yes), rule(0, 6, drop, maybe)}, want: Yes},
		"not known, and nothing else":     {rules: []Rule{rule(0, 6, allow, maybe)}, want: Yes},
		"not known, and all else dropped": {drop: true, rules: []Rule{rule(0, 6, allow, maybe)}, want: Unknown},
		"two of one priority disagree":    {rules: []Rule{rule(0, 6, allow, yes), rule(0, 6, drop, yes)}, want: Unknown},
		"perhaps two of one disagree":     {rules: []Rule{rule(0, 6, allow, yes), rule(0, 6, drop, maybe)}, want: Unknown},
		"an action that is new":           {rules: []Rule{rule(0, 6, "mirror", yes)}, want: Unknown},
		"an action that is new, not met":  {rules: []Rule{rule(0, 6, "mirror", no)}, want: Yes},
		"a match that cannot be read":     {rules: []Rule{rule(0, 6, drop, "ip4 &&")}, want: Unknown},
		"tiers before priorities":         {rules: []Rule{rule(0, 1, allow, yes), rule(1, 100, drop, yes)}, want: Yes},
		"passed on":                       {rules: []Rule{rule(0, 5, "pass", yes), rule(0, 1, allow, yes), rule(1, 1, drop, yes)}, want: No},
		"passed on to nothing":            {drop: true, rules: []Rule{rule(0, 5, "pass", yes), rule(0, 1, allow, yes)}, want: No},
		"perhaps passed on":               {rules: []Rule{rule(0, 5, "pass", maybe), rule(0, 1, allow, yes), rule(1, 1, drop, yes)}, want: Unknown},
		"perhaps passed on to the same":   {rules: []Rule{rule(0, 5, "pass", maybe), rule(0, 1, drop, yes), rule(1, 1, drop, yes)}, want: No},
		"no match in a tier":              {rules: []Rule{rule(0, 5, allow, no), rule(2, 1, drop, yes)}, want: No},
		"dropped after load balancing":    {rules: []Rule{rule(0, 5, allow, yes), late(rule(0, 1, drop, yes))}, want: No},
		"let through twice":               {rules: []Rule{rule(0, 5, allow, yes), late(rule(0, 1, allow, yes))}, want: Yes},
	} {
		t.Run(name, func(t *testing.T) {
			var b Book
			for range 2 {
				if got := b.Decide(tt.rules, four, sets, tt.drop); got.Allowed != tt.want || got.Detail == "" {
					t.Errorf("%+v, want %d", got, tt.want)
				}
				slices.Reverse(tt.rules)
				b.Turn()
			}
		})
	}
}

// FuzzParse: no match panics; its opposite is the opposite or as it says of protocols, and
// what is known does not change when more is.
func FuzzParse(f *testing.F) {
	for _, m := range []string{
		`inport == @pg_a && ip4 && ip4.dst == 0.0.0.0/0 && tcp && tcp.dst >= 80 && tcp.dst <= 90`, `!(ip4.src == {$some, 10.0.0.1} || ct.new)`,
		`70 <= tcp.dst[0..15] < 80 || is_chassis_resident("x")`, `eth.src == fa:16:3e:00:00:05 && (arp || nd_ns)`, `ip6.dst == fe80::/10 && ip6.src != $odd`,
	} {
		f.Add(m)
	}
	f.Fuzz(func(t *testing.T, match string) {
		e, err := Parse(match)
		if err != nil {
			return
		}
		twice, err := Parse(fmt.Sprintf("!(!(%s))", match))
		if err == nil && twice.Eval(four, sets) != e.Eval(four, sets) {
			t.Errorf("%q: its opposite's opposite is another", match)
		}
		unsure := four
		unsure.Src = netip.Addr{}
		if before := e.Eval(unsure, func(string) ([]string, bool) { return nil, false }); before != Unknown {
			if after := e.Eval(four, sets); after != before {
				t.Errorf("%q: %d became %d with more knowledge", match, before, after)
			}
		}
	})
}
