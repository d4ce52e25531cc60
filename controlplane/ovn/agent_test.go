package ovn

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// written is a database that takes every write, and when.
type written struct {
	mu    sync.Mutex
	at    []time.Time
	err   func(table string) error
	tried []string
}

func (w *written) Transact(_ context.Context, ops ...ovsdb.Operation) ([]ovsdb.Result, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what := fmt.Sprint(ops)
	table := sb.ChassisTable
	if strings.Contains(what, sb.ChassisPrivateTable) {
		table = sb.ChassisPrivateTable
	}
	w.tried = append(w.tried, table)
	if w.err != nil {
		if err := w.err(table); err != nil {
			return nil, err
		}
	}
	w.at = append(w.at, time.Now())
	return nil, nil
}

// writes tells when there was one, and attempts of which tables there were.
func (w *written) writes() (at []time.Time, tried []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.at), slices.Clone(w.tried)
}

// publishing runs a publisher with rows of chassis a1 in a bubble of synctest.
func publishing(t *testing.T, db transactor, test func(p *publisher, take func(...ovsdb.Change))) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		p := newPublisher()
		go func() { done <- p.run(ctx) }()
		defer func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}()
		p.identify("a1")
		test(p, func(changes ...ovsdb.Change) {
			p.take(db, ovsdb.Batch{Connected: true, InSync: true, Changes: changes})
			synctest.Wait()
		})
	})
}

func privateRow(pairs map[string]string) ovsdb.Change {
	return ovsdb.Change{Table: sb.ChassisPrivateTable, UUID: "p", New: &sb.ChassisPrivate{UUID: "p", Name: "a1", ExternalIDs: pairs}}
}

func global(n int) ovsdb.Change {
	return ovsdb.Change{Table: sb.SBGlobalTable, UUID: "g", New: &sb.SBGlobal{UUID: "g", NbCfg: n}}
}

// TestAgentSpreads: the first nb_cfg is repeated at once, later ones at a moment of the
// next seconds that differs from node to node, several changes by one write.
func TestAgentSpreads(t *testing.T) {
	var waits []time.Duration
	for range 20 {
		db := &written{}
		publishing(t, db, func(p *publisher, take func(...ovsdb.Change)) {
			agent := map[string]string{keyAgentID: "one", keyAgentBridge: "br-int"}
			row := func(cfg string) ovsdb.Change {
				return privateRow(map[string]string{keyAgentID: "one", keyAgentBridge: "br-int", keyAgentCfg: cfg})
			}
			p.wantAgent(MetadataAgent{ID: "one", Bridge: "br-int", Alive: true})
			take(privateRow(agent))
			take(global(7))
			expect := func(what string, want int) {
				t.Helper()
				if at, _ := db.writes(); len(at) != want {
					t.Fatalf("%s: %d writes, want %d", what, len(at), want)
				}
			}
			expect("the first", 1)
			take(row("7"))
			start := time.Now()
			take(global(8))
			take(global(9))
			expect("the second, at once", 1)
			time.Sleep(cfgSpread + time.Millisecond)
			synctest.Wait()
			expect("the second", 2)
			at, _ := db.writes()
			waits = append(waits, at[1].Sub(start))
			take(row("9"))
			time.Sleep(time.Hour)
			synctest.Wait()
			expect("after an hour", 2)
			// A row that is new has none: that is not put off.
			take(global(10))
			take(privateRow(agent))
			expect("a new row", 3)
		})
	}
	if slices.Sort(waits); waits[0] > cfgSpread/2 || waits[len(waits)-1] < cfgSpread/2 {
		t.Errorf("they wait from %v to %v", waits[0], waits[len(waits)-1])
	}
}

// TestAgentDead: who is not alive, or not there, writes nothing of nb_cfg.
func TestAgentDead(t *testing.T) {
	for name, agent := range map[string]MetadataAgent{"dead": {ID: "one", Bridge: "br-int"}, "none": {Alive: true}} {
		db := &written{}
		publishing(t, db, func(p *publisher, take func(...ovsdb.Change)) {
			take(privateRow(map[string]string{keyAgentID: "other", keyAgentBridge: "br-int", "sluice-version": "1"}), global(7))
			p.wantAgent(agent)
			take(global(8))
			time.Sleep(time.Hour)
			synctest.Wait()
			if _, tried := db.writes(); len(tried) != 0 {
				t.Errorf("%s: wrote %v", name, tried)
			}
		})
	}
}

// TestAgentRefused: that the one row may not be written keeps nobody from the other.
func TestAgentRefused(t *testing.T) {
	db := &written{err: func(table string) error {
		if table == sb.ChassisTable {
			return &ovsdb.PermissionError{}
		}
		return nil
	}}
	publishing(t, db, func(p *publisher, take func(...ovsdb.Change)) {
		take(privateRow(nil), ovsdb.Change{Table: sb.ChassisTable, UUID: "c", New: &sb.Chassis{UUID: "c", Name: "a1"}}, global(7))
		p.wantAgent(MetadataAgent{ID: "one", Alive: true, Publish: true, Networks: []string{"red"}})
		synctest.Wait()
		if at, tried := db.writes(); len(at) != 1 || !slices.Equal(tried, []string{sb.ChassisPrivateTable, sb.ChassisTable}) {
			t.Errorf("%d writes of %v", len(at), tried)
		}
		if err := p.lastError(); err == nil || !strings.Contains(err.Error(), "external_ids of Chassis: ") {
			t.Errorf("error %v", err)
		}
	})
}
