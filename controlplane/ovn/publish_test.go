package ovn

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/ovsdb/sb"
)

// refusing is a database that refuses every write.
type refusing struct{ writes atomic.Int32 }

func (r *refusing) Transact(context.Context, ...ovsdb.Operation) ([]ovsdb.Result, error) {
	r.writes.Add(1)
	return nil, &ovsdb.PermissionError{OperationError: ovsdb.OperationError{Name: "permission error"}}
}

// TestPublishRetries: a write that is refused is not sent again with every batch,
// but after a while that grows, when the row changes and when the session is back.
func TestPublishRetries(t *testing.T) {
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
		db := &refusing{}
		expect := func(what string, want int32) {
			t.Helper()
			synctest.Wait()
			if got := db.writes.Load(); got != want {
				t.Fatalf("%s: %d writes, want %d", what, got, want)
			}
		}
		p.identify("a1")
		row := func(value string) ovsdb.Change {
			return ovsdb.Change{Table: "Chassis_Private", UUID: "u",
				New: &sb.ChassisPrivate{UUID: "u", Name: "a1", ExternalIDs: map[string]string{"other": value}}}
		}
		p.take(db, ovsdb.Batch{Connected: true, InSync: true, Changes: []ovsdb.Change{row("1")}})
		if err := p.want(map[string]string{"sluice-version": "1"}); err != nil {
			t.Fatal(err)
		}
		expect("the first one", 1)
		for n := range 100 {
			p.take(db, ovsdb.Batch{Connected: true, InSync: n%2 == 0})
			synctest.Wait()
		}
		expect("batches of other rows", 1)
		time.Sleep(publishRetryMin + time.Second)
		expect("after a while", 2)
		time.Sleep(publishRetryMin + time.Second)
		expect("before twice the while", 2)
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if n := db.writes.Load(); n < 24*12 || n > 24*12+20 {
			t.Fatalf("%d writes in a day", n)
		}
		so := db.writes.Load()
		p.take(db, ovsdb.Batch{Connected: true, InSync: true, Changes: []ovsdb.Change{row("2")}})
		expect("another row", so+1)
		p.take(db, ovsdb.Batch{})
		if err := p.want(map[string]string{"sluice-version": "2"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		expect("the session lost", so+1)
		var denied *ovsdb.PermissionError
		if err := p.lastError(); !errors.As(err, &denied) {
			t.Errorf("error without a session: %v", err)
		}
		p.take(db, ovsdb.Batch{Connected: true})
		expect("the session back", so+2)
	})
}
