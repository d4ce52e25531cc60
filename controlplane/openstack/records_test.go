package openstack

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// records are the lines of the records, by session.
func records(t *testing.T) map[int][]record {
	f, err := os.Open("testdata/records.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	unzipped, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int][]record{}
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r record
		if err := json.Unmarshal([]byte(strings.ReplaceAll(lines.Text(), "c-sub", "c-int-4")), &r); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		if r.Command != "" && len(out[r.N/1000]) == 0 {
			out[r.N/1000] = []record{commandsNetwork(t, r.N)}
		}
		out[r.N/1000] = append(out[r.N/1000], r)
	}
	if lines.Err() != nil {
		t.Fatal(lines.Err())
	}
	return out
}

// commandsNetwork is the network that commands of the records ask for by its name. Nobody noted its rows. Its subnet,
// which is c-sub in the records, has the name that it has without one in Northbound.
func commandsNetwork(t *testing.T, n int) record {
	r := record{N: n}
	err := json.Unmarshal([]byte(`{
		"Logical_Switch": [{"_uuid": "<net-1>", "name": "c-int", "ports": ["<router-side>", "<port-4>"]}],
		"Logical_Switch_Port": [
			{"_uuid": "<router-side>", "name": "to-router", "type": "router", "options": {"router-port": "lrp"}},
			{"_uuid": "<port-4>", "name": "<port-4>", "addresses": "02:00:00:00:00:02 10.61.0.120", "external_ids": {"neutron:port_name": "c-vipport"}}],
		"Logical_Router": [{"_uuid": "<commands-router>", "name": "router", "ports": "<commands-lrp>"}],
		"Logical_Router_Port": [{"_uuid": "<commands-lrp>", "name": "lrp", "mac": "02:00:00:00:00:01", "networks": "10.61.0.1/24",
			"external_ids": {"neutron:subnet_ids": "<subnet-1>"}}]
	}`), &r.Neutron)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mayUse has the networks of all records: net-beta is the other project's, net-prov is shared.
func mayUse(sessions map[int][]record) map[string][]string {
	out := map[string][]string{}
	for _, session := range sessions {
		for _, r := range session {
			for _, ls := range r.Neutron["Logical_Switch"] {
				switch name := ls.text("name"); {
				case strings.Contains(name, "<net-beta"):
					out[made(ls.text("_uuid"))] = []string{beta}
				case strings.Contains(name, "<net-prov"):
					out[made(ls.text("_uuid"))] = []string{alpha, beta}
				default:
					out[made(ls.text("_uuid"))] = []string{alpha}
				}
			}
		}
	}
	return out
}

// Each exchange of the records is sent to one of two replicas in turn. The answers, and the rows after them,
// are the records' or differ as the table says.
func TestRecords(t *testing.T) {
	for name, raw := range map[string][]byte{"23.03": schema.Northbound2303, "25.03": schema.Northbound} {
		t.Run(name, func(t *testing.T) { testRecords(t, raw) })
	}
}

func testRecords(t *testing.T, raw []byte) {
	sessions := records(t)
	networks := mayUse(sessions)
	reasons := readReasons(t)
	var mu sync.Mutex
	total := newSums()
	t.Run("session", func(t *testing.T) {
		for _, n := range slices.Sorted(maps.Keys(sessions)) {
			t.Run(strconv.Itoa(n), func(t *testing.T) {
				t.Parallel()
				p := newReplay(t, raw, networks)
				for _, r := range sessions[n] {
					switch {
					case r.Neutron != nil:
						p.neutron(r)
					case r.Rows != nil:
						p.dump(r)
					default:
						p.exchange(r)
					}
				}
				mu.Lock()
				defer mu.Unlock()
				total.add(p.sums)
			})
		}
	})
	reasons.check(t, total)
	commands := 0
	for name, replayed := range total.commands {
		if replayed && name != "" {
			commands++
		}
	}
	t.Logf("same: %s\ndifferent, with a reason: %d\nnot served: %s\ncommands of the real client: %d", counts(total.same), len(total.different), counts(total.unservedBy), commands)
}

func counts(of map[string]int) string {
	sum := 0
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(of)) {
		sum += of[what]
		parts = append(parts, fmt.Sprintf("%d %s", of[what], what))
	}
	return fmt.Sprintf("%d (%s)", sum, strings.Join(parts, ", "))
}
