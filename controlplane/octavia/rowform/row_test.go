package rowform

import (
	"bufio"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/nb"
)

// oneOrMore is a set as the records have it: one member is a bare value.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*o = oneOrMore{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(o))
}

type recorded struct {
	N               int               `json:"n"`
	Name            string            `json:"name"`
	Protocol        *string           `json:"protocol"`
	ExternalIDs     map[string]string `json:"external_ids"`
	Options         map[string]string `json:"options"`
	Vips            map[string]string `json:"vips"`
	IPPortMappings  map[string]string `json:"ip_port_mappings"`
	SelectionFields oneOrMore         `json:"selection_fields"`
	HealthCheck     oneOrMore         `json:"health_check"`
}

// faults are columns of records that show a fault of the provider, with what is written here.
var faults = map[int]struct{ column, why string }{
	23055: {"vips", "a load balancer that was disabled keeps its vips"},
	23058: {"vips", "one that was enabled again has none"},
	23090: {"external_ids", "a listener whose pool was taken away names the pool None"},
}

// Rows that ovn-octavia-provider 8.0.0 wrote are read, and written as they were.
func TestRecorded(t *testing.T) {
	f, err := os.Open("testdata/recorded.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	rows := 0
	for lines := bufio.NewScanner(f); lines.Scan(); rows++ {
		var want recorded
		if err := json.Unmarshal(lines.Bytes(), &want); err != nil {
			t.Fatal(err)
		}
		row := &nb.LoadBalancer{
			Name: want.Name, Protocol: want.Protocol, ExternalIDs: want.ExternalIDs, Options: want.Options, Vips: want.Vips,
			IPPortMappings: want.IPPortMappings, SelectionFields: want.SelectionFields, HealthCheck: want.HealthCheck,
		}
		r, err := Parse(row)
		if err != nil {
			t.Errorf("record %d: %v", want.N, err)
			continue
		}
		got := r.NBRow()
		for _, c := range []struct {
			column    string
			got, want map[string]string
		}{
			{"external_ids", got.ExternalIDs, row.ExternalIDs}, {"options", got.Options, row.Options},
			{"vips", got.Vips, row.Vips}, {"ip_port_mappings", got.IPPortMappings, row.IPPortMappings},
		} {
			if fault := faults[want.N]; fault.column == c.column {
				if maps.Equal(c.got, c.want) {
					t.Errorf("record %d is no difference: %s", want.N, fault.why)
				}
				continue
			}
			if !maps.Equal(c.got, c.want) {
				t.Errorf("record %d: %s\n is %v\nwas %v", want.N, c.column, c.got, c.want)
			}
		}
		if !slices.Equal(got.SelectionFields, row.SelectionFields) || !slices.Equal(got.HealthCheck, row.HealthCheck) {
			t.Errorf("record %d: %v %v", want.N, got.SelectionFields, got.HealthCheck)
		}
		if (got.Protocol == nil) != (row.Protocol == nil) || got.Protocol != nil && *got.Protocol != *row.Protocol {
			t.Errorf("record %d: another protocol", want.N)
		}
	}
	if rows < 100 {
		t.Errorf("only %d rows", rows)
	}
}

// A row of a provider before 8.0.0 is read, and becomes one of this form.
func TestOlderForm(t *testing.T) {
	r, err := Parse(&nb.LoadBalancer{Name: "lb", ExternalIDs: map[string]string{
		"lr_ref": "neutron-r", "ls_refs": `{"neutron-n": 2}`, "neutron:vip": "fd00::10", "neutron:vip_port_id": "p", "owner": "x",
		"listener_l": "82:pool_a", "pool_a": "[fd00::107]:80,10.0.0.7:80",
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.Protocol = "tcp"
	for i := range r.Pools[0].Members {
		m := &r.Pools[0].Members[i]
		if m.ID != "" || m.Subnet != "" {
			t.Errorf("a bare endpoint is %+v", m)
		}
		m.ID, m.Subnet = "m"+string(rune('0'+i)), "s"
	}
	got := r.NBRow()
	want := map[string]string{
		"enabled": "True", "lr_ref": "neutron-r", "ls_refs": `{"neutron-n": 2}`, "neutron:vip": "fd00::10", "neutron:vip_port_id": "p", "owner": "x",
		"listener_l": "82:pool_a", "pool_a": "member_m0_fd00::107:80_s,member_m1_10.0.0.7:80_s",
	}
	if !maps.Equal(got.ExternalIDs, want) {
		t.Errorf("external_ids %v", got.ExternalIDs)
	}
	if want := map[string]string{"[fd00::10]:82": "[fd00::107]:80"}; !maps.Equal(got.Vips, want) {
		t.Errorf("vips %v", got.Vips)
	}
}

func TestRowsThatCannotBeRead(t *testing.T) {
	for key, value := range map[string]string{
		"ls_refs": "[]", "neutron:vip": "x", "listener_l": "pool_a", "listener_m": "70000:", "pool_a": "member_m", "pool_b": "10.0.0.1:x",
		"pool_c": "10.0.0.1", "neutron:member_status": `{"m": 1}`, "octavia:healthmonitors": "{}", "neutron:additional_vips": "10.0.0.1,",
		"neutron:vip_fip": "1",
	} {
		ids := map[string]string{"neutron:vip": "10.0.0.10"}
		ids[key] = value
		if r, err := Parse(&nb.LoadBalancer{Name: "lb", ExternalIDs: ids}); err == nil {
			t.Errorf("%s=%q is read as %+v", key, value, r)
		}
	}
}

func TestCounts(t *testing.T) {
	var c Counts
	c.Add("b", 1)
	c.Add("a", 2)
	c.Add("b", 1)
	c.Add("c", 1)
	c.Add("c", -1)
	if got := c.String(); got != `{"b": 2, "a": 2}` {
		t.Errorf("counts %s", got)
	}
	c.Add("a", -2)
	c.Add("b", -2)
	if got := c.String(); got != "{}" || c == nil {
		t.Errorf("no counts: %s", got)
	}
}
