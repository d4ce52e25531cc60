package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/controlplane/identity"
	"github.com/ovn-sluice/sluice/controlplane/northbound"
	"github.com/ovn-sluice/sluice/controlplane/octavia"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
)

const host = "octavia.example:9876"

// Projects, as Keystone names them, and tokens of who has a role in them.
const (
	alpha = "5f0b2a1c9d3e4f68a7b6c5d4e3f2a1b0"
	beta  = "0a1b2c3d4e5f60718293a4b5c6d7e8f9"
	cloud = "c10d00000000000000000000000000ff"

	tokens = `tokens:
- {token: member, project: ` + alpha + `, roles: [member]}
- {token: reader, project: ` + alpha + `, roles: [reader]}
- {token: other, project: ` + beta + `, roles: [member]}
- {token: admin, project: ` + cloud + `, roles: [admin]}
`
)

// unserved is what of the records the API does not serve yet. Exchanges with its paths, methods and bodies, and
// those of sections that are about nothing else, are not replayed; nor are those that need an object of its.
// Row dumps of its sections are not compared.
var unserved = []struct {
	what     string
	exchange *regexp.Regexp // of method, path and body
	sections string
}{
	{"health monitors", regexp.MustCompile(`^\w+ \S*/healthmonitors`), "healthmonitors2 service-monitor-2"},
	{"L7 policies", regexp.MustCompile(`^\w+ \S*/l7policies`), "l7"},
	{"quotas", regexp.MustCompile(`^\w+ \S*/quotas`), "quotas"},
	{"providers, flavors, availability zones", regexp.MustCompile(`^\w+ \S*/(providers|flavors|flavorprofiles|availabilityzones|availabilityzoneprofiles|amphorae)`), ""},
	{"status and statistics", regexp.MustCompile(`^\w+ \S*/(status|statuses|stats)\b`), ""},
	{"failover", regexp.MustCompile(`^\w+ \S*/failover`), ""},
	{"batches of members", regexp.MustCompile(`^PUT \S*/members\b[^/]* `), "batch"},
	{"whole trees", regexp.MustCompile(`^POST \S*/loadbalancers .*"(listeners|pools)":`), "full-tree full-tree-settled full-tree-raced refused-tree"},
	{"states that were written into Octavia's database by hand", nil, "immutable"},
	{"networks that Neutron makes", regexp.MustCompile(`^(POST|PUT|DELETE) /v2.0/(networks|extensions|nosuchthings)`), ""},
}

func (r record) unserved() string {
	text := r.Method + " " + r.Path + " " + string(r.Request) + r.Raw
	for _, u := range unserved {
		if r.Rows == nil && u.exchange != nil && u.exchange.MatchString(text) || r.Section != "" && slices.Contains(strings.Fields(u.sections), r.Section) {
			return u.what
		}
	}
	return ""
}

// replay is a session of the records at a database of its own, with two replicas.
type replay struct {
	*testing.T
	bindings
	sums
	stores   [2]*northbound.Store
	replicas [2]http.Handler
	clock    time.Time
	calls    int
	ids      int
	before   map[string]map[string]row
}

// sums are what came of exchanges and row dumps.
type sums struct {
	seen             everywhere
	same, unservedBy map[string]int
	different        map[int]difference
	// commands of the real client, and whether one has an exchange that is replayed
	commands map[string]bool
}

func newSums() sums {
	return sums{same: map[string]int{}, unservedBy: map[string]int{}, different: map[int]difference{}, commands: map[string]bool{}}
}

// add adds those of a session.
func (s *sums) add(o sums) {
	for k, n := range o.same {
		s.same[k] += n
	}
	for k, n := range o.unservedBy {
		s.unservedBy[k] += n
	}
	for command, replayed := range o.commands {
		s.commands[command] = s.commands[command] || replayed
	}
	maps.Copy(s.different, o.different)
	s.seen.pending += o.seen.pending
	s.seen.updated += o.seen.updated
	s.seen.deleted += o.seen.deleted
}

// difference is an exchange or dump that differs from the record, at places.
type difference struct {
	places []string
	detail string
}

func newReplay(t *testing.T, raw []byte, networks map[string][]string) *replay {
	server := ovsdbtest.Start(t, ovsdbtest.Options{Schema: raw})
	p := &replay{T: t, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), sums: newSums()}
	p.bindings = bindings{
		"octavia": host, "neutron": host + "/network", "unknown": "e4a1f7d2-1111-4222-8333-944455556666",
		"project-alpha": alpha, "project-gamma": alpha, "project-cli": alpha, "project-beta": beta, "project-delta": beta, "project-admin": cloud,
	}
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	if err := os.WriteFile(path, []byte(tokens), 0o600); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	auth, err := identity.NewTokens(path, log)
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.stores {
		store, err := northbound.New(northbound.Config{Endpoints: server.Endpoint()})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		var group sync.WaitGroup
		group.Go(func() { _ = store.Run(ctx) })
		group.Go(func() { _ = octavia.NewReactor(store, log).Run(ctx) })
		t.Cleanup(func() { cancel(); group.Wait() })
		p.stores[i] = store
		p.replicas[i] = Routes(Config{Store: store, Auth: auth, Networks: networks, Log: log, Now: func() time.Time { return p.clock }, NewID: p.newID})
	}
	for _, store := range p.stores {
		ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
		_, err := store.Barrier(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
	p.before = rowsOf(p.snapshot())
	return p
}

// newID is the same in each run: addresses are chosen by it.
func (p *replay) newID() string {
	p.ids++
	return made("new " + strconv.Itoa(p.ids))
}

func (p *replay) snapshot() *northbound.Snapshot {
	p.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	s, err := p.stores[0].Barrier(ctx)
	if err != nil {
		p.Fatal(err)
	}
	return s
}

// neutron writes what Neutron wrote, and waits until load balancers follow.
func (p *replay) neutron(r record) {
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	err := p.stores[0].Commit(ctx, "as Neutron", func(tx *northbound.Tx) error { p.bindings.neutron(tx, r); return nil })
	if err != nil {
		p.Fatalf("record %d: %v", r.N, err)
	}
	for {
		changed := p.stores[0].Changed()
		s := p.snapshot()
		if settled(s) {
			p.subnets(s, r)
			p.before = rowsOf(s)
			return
		}
		select {
		case <-ctx.Done():
			p.Fatalf("record %d: load balancers do not follow the routers", r.N)
		case <-changed:
		}
	}
}

func settled(s *northbound.Snapshot) bool {
	for _, id := range octavia.IDs(s) {
		if b, err := octavia.Load(s, id); err != nil || !b.Settled() {
			return false
		}
	}
	return true
}

// call sends a request to the replica whose turn it is.
func (p *replay) call(method, path, body string, headers map[string]string) *httptest.ResponseRecorder {
	ctx, cancel := context.WithTimeout(context.Background(), ovsdbtest.Timeout)
	defer cancel()
	q := httptest.NewRequestWithContext(ctx, method, "http://"+host+path, strings.NewReader(body))
	for k, v := range headers {
		q.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	p.clock = p.clock.Add(time.Second)
	p.calls++
	p.replicas[p.calls%2].ServeHTTP(w, q)
	return w
}

// exchange sends a record's request, and compares the answer.
func (p *replay) exchange(r record) {
	path, unboundPath := p.fill(r.Path)
	if r.Service == "neutron" && r.Command == "" {
		path = "/network" + path
	}
	body, unboundBody := p.fill(string(r.Request))
	if body == "null" || body == "" {
		body = r.Raw
	}
	if what := r.unserved(); what != "" {
		p.unservedBy[what]++
		if !p.commands[r.Command] {
			p.commands[r.Command] = false
		}
		return
	}
	p.commands[r.Command] = true
	if len(unboundPath)+len(unboundBody) > 0 {
		p.unservedBy["objects that were made by what is not served, or not recorded"]++
		return
	}
	headers := map[string]string{"Content-Type": "application/json", "X-Auth-Token": r.As}
	maps.Copy(headers, r.Headers)
	if r.As == "none" && r.Headers["X-Auth-Token"] == "" {
		delete(headers, "X-Auth-Token")
	}
	w := p.call(r.Method, path, body, headers)
	c := &comparison{bindings: p.bindings, seen: &p.seen}
	c.answer(r, w)
	p.told(r, c, fmt.Sprintf("%s %s %s\n%s\nrecord %d %s%s\nanswer %d %s", r.As, r.Method, path, body, r.Status, jsonOf(r.Reply), r.Text, w.Code, bytes.TrimSpace(w.Body.Bytes())))
	if r.Status >= 300 && w.Code == http.StatusCreated {
		p.undo(path, w.Body.Bytes())
	}
}

// answer compares an answer with the record's.
func (c *comparison) answer(r record, w *httptest.ResponseRecorder) {
	if w.Code == http.StatusNotFound && strings.Contains(jsonOf(r.Reply), `"PENDING_DELETE"`) {
		c.seen.deleted++
		return
	}
	if w.Code != r.Status {
		c.differs("status=" + strconv.Itoa(w.Code))
		return
	}
	if got := w.Header().Get("Allow"); got != r.Allow {
		c.differs("Allow")
	}
	if r.LeftOut != "" {
		return
	}
	kind := r.Type
	if kind == "" && (r.Reply != nil || r.Text != "") {
		kind = "application/json"
	}
	if got := w.Header().Get("Content-Type"); got != kind && r.Method != http.MethodHead {
		c.differs("Content-Type")
	}
	body := bytes.TrimSpace(w.Body.Bytes())
	var got any
	switch {
	case r.Reply == nil:
		if string(body) != r.Text && r.Method != http.MethodHead {
			c.differs("answer")
		}
	case json.Unmarshal(body, &got) != nil:
		c.differs("answer")
	case r.Service == "neutron" && r.Command != "":
		c.value("", names(r.Reply), names(got))
	default:
		c.value("", r.Reply, got)
	}
}

// names are the IDs and names in a list of Neutron's: what the commands for load balancers read of it.
func names(reply any) any {
	lists, is := reply.(map[string]any)
	if !is {
		return reply
	}
	out := map[string]any{}
	for key, v := range lists {
		list, _ := v.([]any)
		short := make([]any, len(list))
		for i, e := range list {
			o, _ := e.(map[string]any)
			short[i] = map[string]any{"id": o["id"], "name": o["name"]}
		}
		out[key] = short
	}
	return out
}

// undo removes what was made here, and not in the record, so that what follows does not show it.
func (p *replay) undo(path string, answer []byte) {
	var made map[string]struct{ ID string }
	if err := json.Unmarshal(answer, &made); err != nil {
		p.Fatal(err)
	}
	for _, o := range made {
		if w := p.call(http.MethodDelete, path+"/"+o.ID+"?cascade=true", "", map[string]string{"X-Auth-Token": "admin"}); w.Code != http.StatusNoContent {
			p.Fatalf("%s %s cannot be removed again: %d", path, o.ID, w.Code)
		}
	}
}

// dump compares rows. No call leaves something to the replica that acts on events.
func (p *replay) dump(r record) {
	s := p.snapshot()
	if !settled(s) {
		p.Errorf("record %d: load balancers are not associated as they have to be", r.N)
	}
	now := rowsOf(s)
	if what := r.unserved(); what != "" {
		c := &comparison{bindings: p.bindings, seen: new(everywhere)}
		c.rows(r, p.before, now) // for the names of rows
		p.unservedBy["rows of "+what]++
	} else {
		c := &comparison{bindings: p.bindings, seen: &p.seen}
		c.rows(r, p.before, now)
		p.told(r, c, fmt.Sprintf("rows: %s\nrecord %s\nrows   %s", r.Note, jsonOf(r.Rows), jsonOf(now)))
	}
	p.before = now
}

func (p *replay) told(r record, c *comparison, detail string) {
	kind := "exchanges"
	if r.Rows != nil {
		kind = "row dumps"
	}
	if len(c.places) == 0 {
		p.same[kind]++
		return
	}
	slices.Sort(c.places)
	p.different[r.N] = difference{c.places, detail}
}
