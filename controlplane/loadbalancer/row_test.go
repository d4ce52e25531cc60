package loadbalancer

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

func text(a netip.AddrPort) string { return intent.FormatEndpoint(a.Addr(), a.Port()) }

// say is short enough for a table.
func say(vips []VIP, wrong []Wrong) string {
	var words []string
	for _, v := range vips {
		w := fmt.Sprintf("%s/%s", text(v.Address), v.Protocol)
		for _, b := range v.Backends {
			w += " " + text(b.Address)
			if b.Weight != 1 {
				w += fmt.Sprintf("=%d", b.Weight)
			}
		}
		words = append(words, w)
	}
	for _, w := range wrong {
		words = append(words, fmt.Sprintf("%s: %v", w.Key, w.Err))
	}
	return strings.Join(words, "; ")
}

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		name      string
		row       Row
		variables map[string]string
		want      string
	}{
		{name: "none"},
		{
			name: "as ovn-octavia-provider writes it",
			row: Row{Protocol: "tcp", VIPs: map[string]string{"10.0.0.10:80": "10.0.0.107:8080,20.0.0.107:8080", "[fd00::10]:80": "[fd00::7]:8080"},
				Options: map[string]string{"hash_fields": "ip_dst,ip_src,tp_dst,tp_src", "affinity_timeout": "360"}},
			want: "10.0.0.10:80/tcp 10.0.0.107:8080 20.0.0.107:8080; [fd00::10]:80/tcp [fd00::7]:8080",
		},
		{
			name: "two listeners on one pool",
			row:  Row{VIPs: map[string]string{"10.0.0.10:80": "10.0.0.7:8080", "10.0.0.10:443": "10.0.0.7:8080"}},
			want: "10.0.0.10:443/tcp 10.0.0.7:8080; 10.0.0.10:80/tcp 10.0.0.7:8080",
		},
		{
			name: "all ports",
			row:  Row{Protocol: "udp", VIPs: map[string]string{"10.0.0.10": "10.0.0.8,10.0.0.7", "fd00::1": "fd00::2", "[fd00::3]": ""}},
			want: "10.0.0.10/udp 10.0.0.7 10.0.0.8; fd00::3/udp; fd00::1/udp fd00::2",
		},
		{
			name: "without backends, and one that is there twice",
			row:  Row{Protocol: "sctp", VIPs: map[string]string{"10.0.0.10:1": "", "10.0.0.10:2": "10.0.0.7:2, 10.0.0.7:2"}},
			want: "10.0.0.10:1/sctp; 10.0.0.10:2/sctp 10.0.0.7:2",
		},
		{
			name: "a comma too many",
			row:  Row{VIPs: map[string]string{"10.0.0.10:1": ",10.0.0.7:2,,", "10.0.0.10:2": ","}},
			want: "10.0.0.10:1/tcp 10.0.0.7:2; 10.0.0.10:2/tcp",
		},
		{
			name: "weights",
			row: Row{VIPs: map[string]string{"10.0.0.10:80": "10.0.0.7:80,10.0.0.8:80,10.0.0.9:80", "[fd00::1]:80": "[fd00::2]:80"},
				Options: map[string]string{"sluice-weights": "10.0.0.8:80=0, [fd00::2]:80=256,10.0.0.99:80=4,"}},
			want: "10.0.0.10:80/tcp 10.0.0.7:80 10.0.0.8:80=0 10.0.0.9:80; [fd00::1]:80/tcp [fd00::2]:80=256",
		},
		{
			name: "what is wrong is wrong alone",
			row: Row{VIPs: map[string]string{
				"10.0.0.1:80": "10.0.0.7:80", "10.0.0.2:80": "10.0.0.7", "10.0.0.3": "10.0.0.7:80", "10.0.0.4:80": "[fd00::1]:80", "10.0.0.5:80": "10.0.0.7:80, ,",
				"10.0.0.6:0": "", "10.0.0.6:080": "", "10.0.0.6:65536": "", "[fd00::1:80": "", "[fd00::1]80": "", "fd00::1%a": "", "::ffff:10.0.0.1": "",
				"0.0.0.0:80": "", "224.0.0.1:80": "", "host:80": "", "[10.0.0.1]:81": "", "": "", "^a:80": "", "[fd00::0:9]:80": "", "[fd00::9]:80": "",
			}},
			want: `10.0.0.1:80/tcp 10.0.0.7:80; [fd00::9]:80/tcp; : "": no IP address; 0.0.0.0:80: "0.0.0.0:80": not the address of one host; ` +
				`10.0.0.2:80: backend "10.0.0.7": give a port if the VIP has one, and only then; 10.0.0.3: backend "10.0.0.7:80": give a port if the VIP has one, and only then; ` +
				`10.0.0.4:80: backend "[fd00::1]:80" is of another family than the VIP; 10.0.0.5:80: backend "": no IP address; ` +
				`10.0.0.6:0: "10.0.0.6:0": the port is no number from 1 to 65535; 10.0.0.6:080: "10.0.0.6:080": the port is no number from 1 to 65535; ` +
				`10.0.0.6:65536: "10.0.0.6:65536": the port is no number from 1 to 65535; 224.0.0.1:80: "224.0.0.1:80": not the address of one host; ` +
				`::ffff:10.0.0.1: "::ffff:10.0.0.1": an IPv4-mapped IPv6 address; [10.0.0.1]:81: "[10.0.0.1]:81": an IPv4 address in brackets; ` +
				`[fd00::1:80: "[fd00::1:80": a bracket is open; [fd00::1]80: "[fd00::1]80": the port is no number from 1 to 65535; ` +
				`[fd00::9]:80: it is the VIP "[fd00::0:9]:80", too; ^a:80: "^a:80": no IP address; fd00::1%a: "fd00::1%a": the address has a zone; host:80: "host:80": no IP address`,
		},
		{name: "protocol", row: Row{Protocol: "icmp", VIPs: map[string]string{"10.0.0.1:80": ""}}, want: `: protocol "icmp" is none of tcp, udp and sctp`},
		{
			name: "weight", row: Row{VIPs: map[string]string{"10.0.0.1:80": ""}, Options: map[string]string{"sluice-weights": "10.0.0.7:80=257"}},
			want: `10.0.0.1:80/tcp; : options:sluice-weights: "10.0.0.7:80=257": the weight is no number from 0 to 256`,
		},
		{
			name: "weights of one", row: Row{Options: map[string]string{"sluice-weights": "10.0.0.7:80=1,10.0.0.7:80=2"}},
			want: `: options:sluice-weights: 10.0.0.7:80 has two weights`,
		},
		{
			name: "weight of none", row: Row{Options: map[string]string{"sluice-weights": "pool=1"}},
			want: `: options:sluice-weights: backend "pool": no IP address`,
		},
		{
			name: "size", row: Row{VIPs: map[string]string{"10.0.0.1:80": ""}, Options: map[string]string{"sluice-m": "1000"}},
			want: "10.0.0.1:80/tcp; : options:sluice-m: a table of 1000 slots: the sizes are [1021 4093 16381 65521]",
		},
		{
			name: "path", row: Row{VIPs: map[string]string{"10.0.0.1:80": ""}, Options: map[string]string{"sluice-path": "kernel"}},
			want: `10.0.0.1:80/tcp; : options:sluice-path: "kernel" is none of auto and ovn`,
		},
		{
			name:      "template",
			row:       Row{VIPs: map[string]string{"^V:^P1": "^B1,10.0.0.9:80", "^W:80": "10.0.0.7:80"}, Options: map[string]string{"template": "true"}},
			variables: map[string]string{"V": "10.0.0.1", "P1": "80", "B1": "10.0.0.7:80,10.0.0.8:80"},
			want:      `10.0.0.1:80/tcp 10.0.0.7:80 10.0.0.8:80 10.0.0.9:80; ^W:80: "^W:80": this chassis has no variable "W" (Chassis_Template_Var)`,
		},
		{
			name:      "two templates that mean one VIP",
			row:       Row{VIPs: map[string]string{"^V:80": "10.0.0.7:80", "^W:80": "10.0.0.8:80"}, Options: map[string]string{"template": "true"}},
			variables: map[string]string{"V": "10.0.0.1", "W": "10.0.0.1"},
			want:      `10.0.0.1:80/tcp 10.0.0.7:80; ^W:80: it is the VIP "^V:80", too`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := say(Parse(tt.row, tt.variables, 0)); got != tt.want {
				t.Errorf("\n got %s\nwant %s", got, tt.want)
			}
		})
	}
}

// The table of a VIP without a variable is the same on all chassis, whatever variables of
// others in its row are there.
func TestTableOfTemplates(t *testing.T) {
	row := Row{Protocol: "tcp", Options: map[string]string{"template": "True"}, VIPs: map[string]string{
		"10.0.0.1:80": "10.0.0.10:80,10.0.0.11:80", "10.0.0.2:80": "^EP"}}
	var list []string
	for i := range 30 {
		list = append(list, fmt.Sprintf("10.0.1.%d:80", i+1))
	}
	for _, variables := range []map[string]string{nil, {"EP": "10.0.1.1:80"}, {"EP": strings.Join(list, ",")}} {
		vips, _ := Parse(row, variables, 0)
		if vips[0].TableSize != 1021 {
			t.Errorf("%d variables: %d slots", len(variables), vips[0].TableSize)
		}
		if len(vips) > 1 && len(vips[1].Backends) == len(list) && vips[1].TableSize == 1021 {
			t.Error("the table of many backends is that of few")
		}
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		options map[string]string
		global  int
		want    VIP
		odd     string
	}{
		{want: VIP{TableSize: 1021}},
		{options: map[string]string{"affinity_timeout": "360"}, want: VIP{TableSize: 1021, Affinity: 6 * time.Minute}},
		{options: map[string]string{"affinity_timeout": "None"}, want: VIP{TableSize: 1021}, odd: `options:affinity_timeout: "None" is no number of seconds and counts as 0, as in OVN`},
		{options: map[string]string{"affinity_timeout": "86400"}, want: VIP{TableSize: 1021, Affinity: 65535 * time.Second}, odd: "options:affinity_timeout: 86400 counts as 65535, as in OVN"},
		{options: map[string]string{"reject": "True", "ct_flush": "TRUE", "event": "1"}, want: VIP{TableSize: 1021, Reject: true, Flush: true}, odd: `options:event: "1" counts as false, as in OVN`},
		{options: map[string]string{"sluice-weights": "10.0.0.7=3,10.0.0.7:80=2"}, want: VIP{TableSize: 1021}, odd: "options:sluice-weights: 10.0.0.7 has no port, and backends of these VIPs have"},
		{options: map[string]string{"reject": "true", "ct_flush": "true"}, want: VIP{TableSize: 1021, Reject: true, Flush: true}},
		{options: map[string]string{"skip_snat": "true", "event": "true"}, want: VIP{TableSize: 1021, SkipSNAT: true, Event: true}},
		{options: map[string]string{"hash_fields": "ip_dst,ip_src"}, want: VIP{TableSize: 1021, ByAddress: true}},
		{options: map[string]string{"hash_fields": "ip_dst,ip_src,tp_dst,tp_src"}, want: VIP{TableSize: 1021}},
		{options: map[string]string{"sluice-m": "16381"}, global: 4093, want: VIP{TableSize: 16381}},
		{global: 4093, want: VIP{TableSize: 4093}},
		{options: map[string]string{"sluice-path": "auto"}, want: VIP{TableSize: 1021}},
		{options: map[string]string{"sluice-path": "ovn"}, want: VIP{TableSize: 1021, Path: PathOVN}},
	} {
		vips, wrong := Parse(Row{VIPs: map[string]string{"10.0.0.1:80": ""}, Options: tt.options}, nil, tt.global)
		tt.want.Key, tt.want.Address, tt.want.Protocol = "10.0.0.1:80", netip.MustParseAddrPort("10.0.0.1:80"), intent.TCP
		odd := ""
		for _, w := range wrong {
			odd += w.Err.Error()
		}
		if len(vips) != 1 || odd != tt.odd || fmt.Sprint(vips[0]) != fmt.Sprint(tt.want) {
			t.Errorf("%v, %d: %+v, %v; want %+v", tt.options, tt.global, vips, wrong, tt.want)
		}
	}
}

// The size of a table follows from all backends of the row, also those without a weight.
func TestTableSize(t *testing.T) {
	var list []string
	for i := range 11 {
		list = append(list, fmt.Sprintf("10.0.0.%d:80", i))
	}
	row := Row{VIPs: map[string]string{"10.1.0.1:80": strings.Join(list, ","), "10.1.0.2:80": list[3]}, Options: map[string]string{"sluice-weights": "10.0.0.2:80=0"}}
	vips, wrong := Parse(row, nil, 0)
	if len(vips) != 2 || len(wrong) > 0 || vips[0].TableSize != 4093 || vips[1].TableSize != 4093 {
		t.Fatal(vips, wrong)
	}
	if v := vips[0].Intent(7); v.Key.VNI != 7 || v.Slots != 4093 || v.Backends.Len() != 11 || !strings.Contains(v.Backends.String(), "10.0.0.2:80=0, ") {
		t.Errorf("%+v: %s", v.Key, v.Backends)
	}
}

func TestChoose(t *testing.T) {
	outside := func(a netip.Addr) string {
		if netip.MustParsePrefix("10.0.0.0/24").Contains(a) {
			return ""
		}
		return "elsewhere"
	}
	for _, tt := range []struct {
		name    string
		row     Row
		want    Path
		because string
	}{
		{"plain", Row{VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:8080"}}, PathEBPF, reason.PathAuto},
		{"none", Row{VIPs: map[string]string{"10.1.0.1:80": ""}}, PathEBPF, reason.NoBackends},
		{"elsewhere", Row{VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:80,10.0.1.1:80"}}, PathOVN, reason.BackendOutside},
		{"SCTP", Row{Protocol: "sctp", VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:80"}}, PathEBPF, reason.PathAuto},
		{"another SCTP port", Row{Protocol: "sctp", VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:81"}}, PathOVN, reason.SCTPPort},
		{"affinity", Row{VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:80"}, Options: map[string]string{"affinity_timeout": "60"}}, PathEBPF, reason.PathAuto},
		{"rejects", Row{VIPs: map[string]string{"10.1.0.1:80": ""}, Options: map[string]string{"reject": "true"}}, PathOVN, reason.NoBackends},
		{"tells", Row{VIPs: map[string]string{"10.1.0.1:80": ""}, Options: map[string]string{"event": "true"}}, PathOVN, reason.NoBackends},
		{"rejects, and all are drained", Row{VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:80"}, Options: map[string]string{"reject": "true", "sluice-weights": "10.0.0.1:80=0"}}, PathEBPF, reason.NoBackends},
		{"tells when it has none", Row{VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:80"}, Options: map[string]string{"event": "true"}}, PathEBPF, reason.PathAuto},
		{"a bad option", Row{VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:80"}, Options: map[string]string{"sluice-weights": "x"}}, PathOVN, reason.BadLoadBalancer},
		{"a table that is too small", Row{VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:80"}, Options: map[string]string{"sluice-m": "7"}}, PathOVN, reason.BadLoadBalancer},
		{"more backends than slots", Row{VIPs: map[string]string{"10.1.0.1:80": manyBackends(1022)}, Options: map[string]string{"sluice-m": "1021"}}, PathOVN, reason.BadLoadBalancer},
		{"as many backends as slots", Row{VIPs: map[string]string{"10.1.0.1:80": manyBackends(1021)}, Options: map[string]string{"sluice-m": "1021"}}, PathEBPF, reason.PathAuto},
		{"link-local", Row{VIPs: map[string]string{"169.254.1.1:80": "10.0.0.1:80"}}, PathOVN, reason.MartianVIP},
		{"link-local 6", Row{VIPs: map[string]string{"[fe80::1]:80": "[fd00::1]:80"}}, PathOVN, reason.MartianVIP},
		{"a link-local backend", Row{VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:80,169.254.7.1:80"}}, PathOVN, reason.MartianVIP},
		{"asked for", Row{VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:8080"}, Options: map[string]string{"sluice-path": "ovn"}}, PathOVN, reason.PathConfigured},
	} {
		t.Run(tt.name, func(t *testing.T) {
			vips, wrong := Parse(tt.row, nil, 0)
			if len(vips) != 1 || (len(wrong) > 0) != (vips[0].Broken != nil) {
				t.Fatal(vips, wrong)
			}
			if got := Choose(vips[0], outside); got.Path != tt.want || got.Reason != tt.because {
				t.Errorf("%+v, want %s because of %s", got, tt.want, tt.because)
			}
		})
	}
}

// manyBackends are so many ports of one address.
func manyBackends(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("10.0.0.1:%d", 1000+i))
	}
	return strings.Join(out, ",")
}

// FuzzParse takes a VIP and its backends, weights and the value of a variable.
func FuzzParse(f *testing.F) {
	f.Add("10.0.0.1:80", "10.0.0.7:80,10.0.0.8:80", "10.0.0.7:80=2", "x", false)
	f.Add("[fd00::1]:80", "[fd00::2]:80", "[fd00::2]:80=0", "x", false)
	f.Add("fd00::1", "fd00::2", "", "x", false)
	f.Add("^v:80", "^v:81", "", "10.0.0.1", true)
	f.Fuzz(func(t *testing.T, vip, backends, weights, variable string, template bool) {
		row := Row{VIPs: map[string]string{vip: backends}, Options: map[string]string{"sluice-weights": weights, "template": fmt.Sprint(template)}}
		vips, wrong := Parse(row, map[string]string{"v": variable}, 0)
		said := len(vips) + len(wrong)
		if len(vips) == 1 && vips[0].Broken != nil {
			said-- // with a bad option the VIP is OVN's
		}
		if said != 1 {
			t.Fatalf("%v, %v", vips, wrong)
		}
		for _, v := range vips {
			again := Row{VIPs: map[string]string{text(v.Address): ""}}
			var list []string
			for _, b := range v.Backends {
				list = append(list, text(b.Address))
			}
			again.VIPs[text(v.Address)] = strings.Join(list, ",")
			two, wrong := Parse(again, nil, 0)
			if len(wrong) > 0 || len(two) != 1 || two[0].Address != v.Address || len(two[0].Backends) != len(v.Backends) {
				t.Fatalf("%v is %v, %v when read again", v, two, wrong)
			}
		}
	})
}

// A drain holds when the row's owner writes its options as a whole; a weight that the options
// name counts before one that is held.
func TestHeldWeights(t *testing.T) {
	weights := func(held string, options map[string]string) (out []uint16, wrong []Wrong) {
		vips, wrong := Parse(Row{VIPs: map[string]string{"10.1.0.1:80": "10.0.0.1:80,10.0.0.2:80", "[fd00::1]:80": "[fd00::2]:80"}, Held: held, Options: options}, nil, 0)
		for _, v := range vips {
			for _, b := range v.Backends {
				out = append(out, b.Weight)
			}
		}
		return out, wrong
	}
	for _, tt := range []struct {
		name, held string
		options    map[string]string
		want       []uint16
	}{
		{"drained", "10.0.0.1:80=0", map[string]string{"sluice-weights": "10.0.0.1:80=0"}, []uint16{0, 1, 1}},
		{"overwritten", "10.0.0.1:80=0,[fd00::2]:80=0", map[string]string{"affinity_timeout": "360"}, []uint16{0, 1, 0}},
		{"without options", "10.0.0.1:80=0", nil, []uint16{0, 1, 1}},
		{"overwritten with other weights", "10.0.0.1:80=0", map[string]string{"sluice-weights": "10.0.0.2:80=3"}, []uint16{0, 3, 1}},
		{"taken back by hand", "10.0.0.1:80=0", map[string]string{"sluice-weights": "10.0.0.1:80=2"}, []uint16{2, 1, 1}},
		{"of another", "10.0.0.9:80=0", nil, []uint16{1, 1, 1}},
	} {
		if got, wrong := weights(tt.held, tt.options); !slices.Equal(got, tt.want) || len(wrong) > 0 {
			t.Errorf("%s: %v (%v), want %v", tt.name, got, wrong, tt.want)
		}
	}
	// What cannot be read makes the row OVN's, and says where it is.
	if _, wrong := weights("x=0", nil); len(wrong) != 1 || !strings.Contains(wrong[0].Err.Error(), "NB_Global") {
		t.Errorf("a bad weight: %v", wrong)
	}
}
