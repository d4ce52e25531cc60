package ovsdb_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/schema"
)

func TestConditionsGrowAndShrink(t *testing.T) {
	server := startSB(t)
	config := sbConfig(server.Endpoint())
	config.Conditions = nil
	s, r := run(t, config)
	r.waitSync()
	a := addChassis(t, s, "a", "192.0.2.1")
	addChassis(t, s, "b", "192.0.2.2")
	addChassis(t, s, "c", "192.0.2.3")
	transact(t, s,
		ovsdb.SetKeys(sb.ChassisTable, a, "other_config", map[string]string{"role": "gw", "x": "y"}),
		ovsdb.AddMembers(sb.ChassisTable, a, "transport_zones", "z1", "z2"))
	for _, step := range []struct {
		clauses []ovsdb.Clause
		want    []string
	}{
		{nil, nil},
		{[]ovsdb.Clause{ovsdb.Equal("name", "a")}, []string{"a"}},
		{[]ovsdb.Clause{ovsdb.Equal("name", "a"), ovsdb.Equal("name", "c")}, []string{"a", "c"}},
		{[]ovsdb.Clause{ovsdb.All()}, []string{"a", "b", "c"}},
		{[]ovsdb.Clause{ovsdb.Equal("_uuid", ovsdb.UUID(a))}, []string{"a"}},
		{[]ovsdb.Clause{ovsdb.Includes("transport_zones", "z2")}, []string{"a"}},
		{[]ovsdb.Clause{ovsdb.IncludesPair("other_config", "role", "gw")}, []string{"a"}},
		{[]ovsdb.Clause{ovsdb.IncludesPair("other_config", "role", "compute"), ovsdb.Equal("name", "b")}, []string{"b"}},
		{[]ovsdb.Clause{ovsdb.Equal("nb_cfg", 0), ovsdb.All()}, []string{"a", "b", "c"}},
		{nil, nil},
	} {
		if err := s.SetConditions(ovsdb.Conditions{sb.ChassisTable: step.clauses}); err != nil {
			t.Fatalf("SetConditions %v: %v", step.clauses, err)
		}
		waitAnswered(r, s)
		if got := r.chassisNames(); !slices.Equal(got, step.want) {
			t.Errorf("%v: chassis %v, want %v", step.clauses, got, step.want)
		}
	}
}

// waitAnswered waits for the answer to the last SetConditions; recorder.waitSync
// could still see the batch before it.
func waitAnswered(r *recorder, s *ovsdb.Session) {
	r.t.Helper()
	r.wait("the conditions to be answered", func() bool { return s.Status().InSync })
}

func TestConditionMistakes(t *testing.T) {
	config := sbConfig("tcp:[::1]:6642")
	config.Tables[sb.ChassisTable] = []string{"name", "encaps", "other_config"}
	config.Handler = func(ovsdb.Batch) {}
	s, err := ovsdb.NewSession(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, conditions := range map[string]ovsdb.Conditions{
		"foreign table":      {sb.FDBTable: {ovsdb.All()}},
		"unfollowed column":  {sb.ChassisTable: {ovsdb.Equal("hostname", "x")}},
		"unknown column":     {sb.EncapTable: {ovsdb.Equal("nosuch", "x")}},
		"wrong type":         {sb.ChassisTable: {ovsdb.Equal("name", 1)}},
		"string for UUID":    {sb.ChassisTable: {ovsdb.Includes("encaps", "x")}},
		"bad UUID":           {sb.ChassisTable: {ovsdb.Includes("encaps", ovsdb.UUID("x"))}},
		"scalar for map":     {sb.ChassisTable: {ovsdb.Equal("other_config", "x")}},
		"bad row UUID":       {sb.ChassisTable: {ovsdb.Equal("_uuid", ovsdb.UUID("x"))}},
		"plain string as id": {sb.ChassisTable: {ovsdb.Equal("_uuid", "x")}},
	} {
		if err := s.SetConditions(conditions); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

const (
	churnDatapaths = 8
	churnPorts     = 60
)

// churner changes random Port_Binding rows.
type churner struct {
	t         *testing.T
	s         *ovsdb.Session
	rng       *rand.Rand
	datapaths []string
	ports     map[string]string // name → UUID
	key       int
}

func newChurner(t *testing.T, s *ovsdb.Session, seed uint64) *churner {
	c := &churner{t: t, s: s, rng: rand.New(rand.NewPCG(seed, 1)), ports: map[string]string{}}
	for i := range churnDatapaths {
		uuid := transact(t, s, ovsdb.Insert(&sb.DatapathBinding{TunnelKey: i + 1}, ""))[0].UUID
		c.datapaths = append(c.datapaths, uuid)
	}
	return c
}

func (c *churner) step() {
	name := "p" + strconv.Itoa(c.rng.IntN(churnPorts))
	uuid, there := c.ports[name]
	datapath := c.datapaths[c.rng.IntN(len(c.datapaths))]
	switch {
	case !there:
		c.key++
		row := &sb.PortBinding{LogicalPort: name, Datapath: datapath, TunnelKey: c.key, Type: c.kind()}
		c.ports[name] = transact(c.t, c.s, ovsdb.Insert(row, ""))[0].UUID
	case c.rng.IntN(4) == 0:
		delete(c.ports, name)
		transact(c.t, c.s, ovsdb.Delete(sb.PortBindingTable, uuid))
	case c.rng.IntN(3) == 0:
		c.key++
		transact(c.t, c.s, ovsdb.Update(
			&sb.PortBinding{UUID: uuid, Datapath: datapath, TunnelKey: c.key, Type: c.kind()}, "datapath", "tunnel_key", "type"))
	case c.rng.IntN(2) == 0:
		transact(c.t, c.s, ovsdb.AddMembers(sb.PortBindingTable, uuid, "mac", fmt.Sprint(c.rng.IntN(5))),
			ovsdb.RemoveMembers(sb.PortBindingTable, uuid, "mac", fmt.Sprint(c.rng.IntN(5))))
	default:
		transact(c.t, c.s,
			ovsdb.DeleteKeys(sb.PortBindingTable, uuid, "external_ids", fmt.Sprint(c.rng.IntN(4))),
			ovsdb.SetKeys(sb.PortBindingTable, uuid, "external_ids",
				map[string]string{fmt.Sprint(c.rng.IntN(4)): fmt.Sprint(c.rng.IntN(4))}))
	}
}

func (c *churner) kind() string {
	return []string{"", "localnet", "patch", "chassisredirect"}[c.rng.IntN(4)]
}

// randomWish is a condition and what it means, in Go.
func randomWish(rng *rand.Rand, datapaths []string) (clauses []ovsdb.Clause, match func(*sb.PortBinding) bool) {
	var tests []func(*sb.PortBinding) bool
	for range rng.IntN(5) {
		switch rng.IntN(4) {
		case 0, 1:
			d := datapaths[rng.IntN(len(datapaths))]
			clauses = append(clauses, ovsdb.Equal("datapath", ovsdb.UUID(d)))
			tests = append(tests, func(p *sb.PortBinding) bool { return p.Datapath == d })
		case 2:
			clauses = append(clauses, ovsdb.Equal("type", "localnet"))
			tests = append(tests, func(p *sb.PortBinding) bool { return p.Type == "localnet" })
		case 3:
			name := "p" + strconv.Itoa(rng.IntN(churnPorts))
			clauses = append(clauses, ovsdb.Equal("logical_port", name))
			tests = append(tests, func(p *sb.PortBinding) bool { return p.LogicalPort == name })
		}
	}
	return clauses, func(p *sb.PortBinding) bool {
		return slices.ContainsFunc(tests, func(test func(*sb.PortBinding) bool) bool { return test(p) })
	}
}

// diffRows compares the copy with the replica filtered by match.
func diffRows(have, replica map[string]ovsdb.Row, match func(*sb.PortBinding) bool) string {
	for uuid, row := range replica {
		p := row.(*sb.PortBinding)
		mine, there := have[uuid]
		switch {
		case match(p) && !there:
			return "missing " + p.LogicalPort
		case !match(p) && there:
			return "too much: " + p.LogicalPort
		case there && !mine.EqualsModel(row):
			return fmt.Sprintf("%s differs: %+v, want %+v", p.LogicalPort, mine, row)
		}
	}
	for uuid := range have {
		if _, there := replica[uuid]; !there {
			return "deleted but kept: " + uuid
		}
	}
	return ""
}

func portConfig(endpoints string) ovsdb.Config {
	config := sbConfig(endpoints)
	config.Tables = ovsdb.Tables{sb.PortBindingTable: nil, sb.DatapathBindingTable: nil}
	config.Conditions = ovsdb.Conditions{sb.PortBindingTable: {ovsdb.All()}}
	return config
}

// settle waits until the conditional copy equals the filtered replica. The two
// follow the server independently, so that both have to arrive.
func settle(t *testing.T, s *ovsdb.Session, r, replica *recorder, match func(*sb.PortBinding) bool, what string) {
	t.Helper()
	var diff string
	defer func() {
		if t.Failed() {
			t.Logf("%s: %s", what, diff)
		}
	}()
	r.wait(what, func() bool {
		if !s.Status().InSync {
			return false
		}
		diff = diffRows(r.rows[sb.PortBindingTable], replica.table(sb.PortBindingTable), match)
		return diff == ""
	})
}

// TestConditionsUnderChurn is the promise of the issue: 100 condition changes
// while rows change leave the rows of a full replica that match.
func TestConditionsUnderChurn(t *testing.T) {
	server := startSB(t)
	churn(t, server.Endpoint(), nil)
}

// TestConditionsUnderChurnAndReconnects does the same on a cluster, which keeps
// transaction ids, while connections break at random moments.
func TestConditionsUnderChurnAndReconnects(t *testing.T) {
	members := ovsdbtest.StartCluster(t, ovsdbtest.Options{Schema: schema.Southbound}, 1)
	proxy := ovsdbtest.NewProxy(t, members[0].Endpoint())
	churn(t, members[0].Endpoint(), proxy)
}

func churn(t *testing.T, endpoint string, proxy *ovsdbtest.Proxy) {
	writer, w := run(t, portConfig(endpoint))
	w.waitSync()
	c := newChurner(t, writer, 7)
	for range 100 {
		c.step()
	}
	conditional := portConfig(endpoint)
	if proxy != nil {
		conditional.Endpoints = proxy.Endpoint()
	}
	s, r := run(t, conditional)
	_, replica := run(t, portConfig(endpoint))
	replica.waitSync()
	r.waitSync()

	ctx, stop := context.WithCancel(context.Background())
	var group errgroup.Group
	group.Go(func() error {
		for ctx.Err() == nil && !t.Failed() {
			c.step()
		}
		return nil
	})
	rng := rand.New(rand.NewPCG(11, 3))
	match := func(*sb.PortBinding) bool { return true }
	for i := range 100 {
		var clauses []ovsdb.Clause
		clauses, match = randomWish(rng, c.datapaths)
		if err := s.SetConditions(ovsdb.Conditions{sb.PortBindingTable: clauses}); err != nil {
			t.Errorf("SetConditions: %v", err)
		}
		if proxy != nil && rng.IntN(5) == 0 {
			proxy.Cut()
		}
		if i%3 == 0 { // else the next change comes before the answer
			waitAnswered(r, s)
		}
		if proxy != nil && i%10 == 0 {
			proxy.Cut() // with nothing asked: the session resumes
			r.waitLost()
			waitAnswered(r, s)
		}
	}
	stop()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	settle(t, s, r, replica, match, "the final rows")
	if len(replica.table(sb.PortBindingTable)) == 0 {
		t.Error("the replica is empty")
	}
	if err := s.SetConditions(ovsdb.Conditions{sb.PortBindingTable: {ovsdb.All()}}); err != nil {
		t.Error(err)
	}
	settle(t, s, r, replica, func(*sb.PortBinding) bool { return true }, "all rows")
	if st := s.Status(); proxy != nil && (st.Resumed == 0 || st.Resumed == st.Connects) {
		t.Errorf("%d connects, %d resumed: want both ways to be taken", st.Connects, st.Resumed)
	}
}
