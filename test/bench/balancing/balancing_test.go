package balancing

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/bench/load"
	"github.com/ovn-sluice/sluice/test/lab"
)

// Each machine of the network has a twin that differs by its tenant alone, and only that.
func TestScenario(t *testing.T) {
	s := scenario(lab.EVPNParams{})
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	twins := 0
	for _, c := range s.Clouds {
		by := map[string]lab.VM{}
		for _, vm := range c.VMs {
			by[vm.Name] = vm
		}
		for name, vm := range by {
			if strings.Contains(name, "be") != (vm.Chassis == distant && name != "c-net") {
				t.Errorf("%s is on %s", name, vm.Chassis)
			}
			other, ok := by[twin(name)]
			if !ok {
				continue
			}
			twins++
			other.Name, other.Tenant = name, vm.Tenant
			if vm.Tenant != balanced || other != vm {
				t.Errorf("%+v has the twin %+v", vm, by[twin(name)])
			}
		}
	}
	if want := lab.Backends + 2; twins != want { // and c-same and c-fabric
		t.Errorf("%d twins, want %d", twins, want)
	}
}

func TestVIPs(t *testing.T) {
	seen := map[netip.AddrPort]bool{}
	for _, from := range []asking{fabric, machine} {
		for _, path := range []string{pathEBPF, pathOVN} {
			for _, v6 := range []bool{false, true} {
				at := vip(from, path, v6)
				if at.Addr().Is6() != v6 || seen[at] {
					t.Errorf("%s, %s, %s: %s", from.name, path, familyName(v6), at)
				}
				seen[at] = true
			}
		}
	}
}

const dump = `tcp,orig=(src=10.10.0.31,dst=10.99.0.12,sport=5000,dport=80),reply=(src=10.10.0.21,dst=10.10.0.31,sport=8080,dport=5000),zone=4,protoinfo=(state=TIME_WAIT)
tcp,orig=(src=10.10.0.31,dst=10.10.0.21,sport=5000,dport=8080),reply=(src=10.10.0.21,dst=10.10.0.31,sport=8080,dport=5000),zone=5,protoinfo=(state=TIME_WAIT)
tcp,orig=(src=10.10.0.31,dst=10.10.0.22,sport=5001,dport=8080),reply=(src=10.10.0.22,dst=10.10.0.31,sport=8080,dport=5001),zone=5,protoinfo=(state=TIME_WAIT)
tcp,orig=(src=10.10.0.23,dst=10.10.0.31,sport=8080,dport=5002),reply=(src=10.10.0.31,dst=10.10.0.23,sport=5002,dport=8080),zone=6,protoinfo=(state=TIME_WAIT)
tcp,orig=(src=10.10.0.31,dst=10.99.0.12,sport=5003,dport=80),reply=(src=10.10.0.21,dst=10.10.0.31,sport=8080,dport=5003),zone=4,protoinfo=(state=TIME_WAIT)
tcp,orig=(src=fd00:10::31,dst=fd00:99::c,sport=5000,dport=80),reply=(src=fd00:10::21,dst=fd00:10::31,sport=8080,dport=5000),zone=4,protoinfo=(state=TIME_WAIT)
icmpv6,orig=(src=fd00:10::31,dst=fd00:10::1,id=0,type=135,code=0),reply=(src=fd00:10::1,dst=fd00:10::31,id=0,type=136,code=0),zone=4
`

func TestReadTracked(t *testing.T) {
	four, six := netip.MustParseAddr("10.10.0.31"), netip.MustParseAddr("fd00:10::31")
	for _, row := range []struct {
		client, vip string
		first, n    int
		want        tracked
	}{
		{four.String(), "10.99.0.12", 5000, 3, tracked{3, 1}},
		{four.String(), "10.99.0.12", 5000, 4, tracked{4, 2}},
		{four.String(), "10.99.0.11", 5000, 4, tracked{4, 0}},
		{four.String(), "10.99.0.12", 5004, 4, tracked{0, 0}},
		{six.String(), "fd00:99::c", 5000, 4, tracked{1, 1}},
		{"10.10.0.32", "10.99.0.12", 5000, 4, tracked{0, 0}},
	} {
		got, err := readTracked(dump, netip.MustParseAddr(row.client), netip.MustParseAddr(row.vip), row.first, row.n)
		if err != nil || got != row.want {
			t.Errorf("%+v: %+v (%v)", row, got, err)
		}
	}
	if _, err := readTracked("tcp,orig=(src=nobody,dst=10.99.0.12,sport=1,dport=80)", four, four, 1, 1); err == nil {
		t.Error("no address passes")
	}
}

func TestProve(t *testing.T) {
	for _, row := range []struct {
		target  target
		counted uint64
		has     tracked
		want    string
	}{
		{target{path: pathEBPF}, 100, tracked{10, 0}, ""},
		{target{path: pathEBPF}, 99, tracked{}, "a session for each"},
		{target{path: pathEBPF}, 100, tracked{10, 1}, "OVN has balanced some"},
		{target{path: pathOVN}, 0, tracked{10, 10}, ""},
		{target{path: pathOVN}, 0, tracked{10, 8}, "not balanced them all"},
		{target{path: pathOVN}, 1, tracked{10, 10}, "eBPF has begun"},
		{target{bare: true}, 0, tracked{}, ""},
		{target{bare: true}, 0, tracked{1, 0}, "without load balancers"},
		{target{}, 0, tracked{10, 0}, ""},
	} {
		row.target.made = 100
		err := prove(&row.target, row.counted, 10, row.has)
		if (row.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("%+v: %v, want %q", row, err, row.want)
		}
	}
}

func TestCompare(t *testing.T) {
	b := &bench{Config: Config{Clients: 2, Connections: 10, Alone: 1, Rounds: 3}}
	var list []*target
	for _, rates := range [][]float64{{100, 200, 100}, {100, 200, 100}, {99, 198, 120}, {50, 100, 50}} {
		list = append(list, &target{
			busy:  load.Samples{PerSecond: rates, Took: []time.Duration{time.Millisecond}},
			alone: load.Samples{Took: []time.Duration{time.Millisecond}}, answers: map[string]int{"be1": 1, "be2": 3},
		})
	}
	b.compare(fabric, true, list)
	if got := b.results[0]; got.Name != "balancing c-fabric IPv6 connections/s" || got.Value != 0.99 || got.Goal.Limit != 0.95 || !got.Goal.Least || !strings.Contains(got.Note, "spread 25/75 %") {
		t.Errorf("%+v", got)
	}
	if got := b.results[2]; got.Value != 1.98 || got.Unit != "x ct_lb" || got.Goal.Limit != 1 {
		t.Errorf("%+v", got)
	}
}

func TestConfig(t *testing.T) {
	good := Config{Clients: 16, Connections: 256, Alone: 25, Rounds: 41}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	few, many := good, good
	few.Connections, many.Rounds = 7, 100
	for _, c := range []Config{few, many} {
		if c.check() == nil {
			t.Errorf("%+v passes", c)
		}
	}
}
