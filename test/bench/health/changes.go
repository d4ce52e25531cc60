package health

import (
	"context"
	"fmt"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

const (
	// patience is how long a change may take at all.
	patience = 30 * time.Second
	// between two changes, what follows the first one's table ends.
	between = 20 * time.Millisecond
)

// monitors are the _uuids of Service_Monitor's rows of the backend, by port.
func monitors(sb *lab.Database) (map[int]string, error) {
	var found struct {
		Rows []struct {
			UUID [2]string `json:"_uuid"`
			Port int
		}
	}
	err := sb.Transact(&found, fmt.Sprintf(`{"op":"select","table":"Service_Monitor","where":[["ip","==",%q]],"columns":["_uuid","port"]}`, probed))
	out := map[int]string{}
	for _, r := range found.Rows {
		out[r.Port] = r.UUID[1]
	}
	return out, err
}

// changes takes the backend of one VIP after the other down and back up, and notes in the tables
// what each change took. Acknowledged is what the database took before, from the request on.
func (b *bench) changes(ctx context.Context, tables []*table) (acknowledged []time.Duration, err error) {
	sb, err := b.lab.OpenDatabase(ctx, cloud, "sb")
	if err != nil {
		return nil, err
	}
	defer sb.Close()
	rows, err := monitors(sb)
	if err != nil {
		return nil, err
	}
	for n := range b.Changes {
		i, health := n/2%b.VIPs, []string{"offline", "online"}[n%2]
		id, ok := rows[firstPort+i]
		if !ok {
			return nil, fmt.Errorf("VIP %s: no row of Service_Monitor has port %d", vip(i), firstPort+i)
		}
		// By _uuid: for any other column the server looks at every row.
		op := fmt.Sprintf(`{"op":"update","table":"Service_Monitor","where":[["_uuid","==",["uuid",%q]]],"row":{"status":%q}}`, id, health)
		took, err := change(ctx, tables, i, func() error { return sb.Transact(nil, op) })
		if err != nil {
			return nil, fmt.Errorf("change %d, to %s: %w", n, health, err)
		}
		acknowledged = append(acknowledged, took)
		if err := sleep(ctx, between); err != nil {
			return nil, err
		}
	}
	return acknowledged, nil
}

// change writes, which it times, and waits until each table has noted from then on how long the
// VIP of a number took to have another table.
func change(ctx context.Context, tables []*table, i int, write func() error) (written time.Duration, err error) {
	before := make([]uint32, len(tables))
	for k, t := range tables {
		if before[k], err = t.of(i); err != nil {
			return 0, err
		}
	}
	requested := time.Now()
	if err := write(); err != nil {
		return 0, err
	}
	begin := time.Now()
	done := make([]bool, len(tables))
	for left := len(tables); left > 0; {
		for k, t := range tables {
			if done[k] {
				continue
			}
			now, err := t.of(i)
			if err != nil {
				return 0, err
			}
			if now != before[k] {
				t.took = append(t.took, time.Since(begin))
				done[k] = true
				left--
			}
		}
		if time.Since(begin) > patience {
			return 0, fmt.Errorf("the table of VIP %s never changed", vip(i))
		}
		if left > 0 {
			if err := sleep(ctx, pollEvery); err != nil {
				return 0, err
			}
		}
	}
	return begin.Sub(requested), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
