package ovn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ovn-sluice/sluice/pkg/ovsdb"
	"github.com/ovn-sluice/sluice/pkg/statefile"
)

// A follower that starts while the Northbound database is away goes on with the rows that
// the one before it had: they are in Config.Memory. What has changed meanwhile is put right
// when the database answers.

const (
	// memoryTick is how often it is looked whether there is something to be remembered;
	// memoryRest is between two files.
	memoryTick = time.Second
	memoryRest = 10 * time.Second
	// memoryFor is for how long after the database was last in sync it counts.
	memoryFor = time.Hour
)

// memory is what is remembered, and what was recalled of it. Only the follower's loop
// touches it.
type memory struct {
	path string
	// A file is read only by whom it is for: the same boot and chassis, a build that reads
	// the same of rows, and needs that ask for the same columns.
	boot, layout string
	columns      ovsdb.Tables
	// settled: the rows are those of a moment at which the database was in sync, the last one
	// at confirmed. dirty: they were not handed to write yet, the last time at handed, as they
	// are; touched is when the file was last said to be right.
	settled, dirty             bool
	confirmed, handed, touched time.Time
	write                      chan remembered
	// lost: the file could not be written.
	lost atomic.Bool
	// recalled are rows that the database has not confirmed yet, which said so last at until.
	recalled map[UUID]Table
	until    time.Time
}

// remembered is the file. Its time of modification is when the database was last in sync.
type remembered struct {
	Boot     string       `json:"boot"`
	SystemID string       `json:"systemID"`
	Layout   string       `json:"layout"`
	Columns  ovsdb.Tables `json:"columns"`
	// Rows are by the number of their table.
	Rows map[Table][]json.RawMessage `json:"rows"`

	// rows are those to be written, nil where the file is right; at is the time of it.
	rows [][]Row
	at   time.Time
}

// northboundTypes are those of the rows of the Northbound database.
var northboundTypes = map[Table]reflect.Type{}

func init() {
	for _, row := range []Row{
		LogicalRouter{}, LogicalRouterPort{}, NAT{}, StaticRoute{}, LogicalSwitch{}, LogicalSwitchPort{}, DHCPOptions{},
		ACL{}, PortGroup{}, NBGlobal{}, LoadBalancer{}, LoadBalancerGroup{}, HealthCheck{},
	} {
		northboundTypes[row.table()] = reflect.TypeOf(row)
	}
}

func newMemory(cfg Config) *memory {
	m := &memory{path: cfg.Memory, layout: layout(northboundTypes), write: make(chan remembered, 1)}
	m.columns, _ = northboundColumns(cfg.Needs)
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || cfg.Northbound == "" {
		m.path = ""
	}
	m.boot = string(bytes.TrimSpace(boot))
	return m
}

// layout is another text for a build that reads other columns, or the same in another way.
func layout(types map[Table]reflect.Type) string {
	var describe func(t reflect.Type) string
	describe = func(t reflect.Type) string {
		if t.Kind() != reflect.Struct || !t.Field(0).IsExported() {
			return t.String()
		}
		var out strings.Builder
		for i := range t.NumField() {
			if t.Field(i).Tag.Get("json") == "-" {
				continue
			}
			fmt.Fprintf(&out, "%s %s;", t.Field(i).Name, describe(t.Field(i).Type))
		}
		return out.String()
	}
	all := sha256.New()
	for _, table := range slices.Sorted(maps.Keys(types)) {
		fmt.Fprintf(all, "%d %s\n", table, describe(types[table]))
	}
	return hex.EncodeToString(all.Sum(nil)[:8])
}

// remember hands the rows over to be written, if they were in sync and were not written as
// they are; rest is the time that has to be between two files.
func (f *Follower) remember(rest time.Duration) {
	m, now := f.memory, time.Now()
	if m.path == "" || !m.settled || f.rows.SystemID() == "" {
		return
	}
	if f.nb.isInSync() {
		m.confirmed = now
	}
	m.dirty = m.lost.Swap(false) || m.dirty
	next := remembered{Boot: m.boot, SystemID: f.rows.SystemID(), Layout: m.layout, Columns: m.columns, at: m.confirmed}
	switch {
	case m.dirty && now.Sub(m.handed) >= rest:
		next.rows = f.rows.allNB()
	case m.dirty || m.confirmed != now || now.Sub(m.touched) < rest:
		return
	}
	select {
	case m.write <- next:
		m.touched = now
		if next.rows != nil {
			m.dirty, m.handed = false, now
		}
	default: // the one before is being written
	}
}

// writer writes what it is handed until ctx ends.
func (m *memory) writer(ctx context.Context, log *slog.Logger) error {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case next := <-m.write:
			err := next.save(m.path)
			m.lost.Store(err != nil)
			// Where there is no file, as at a first start without rows, the next one has the rows.
			missing := next.rows == nil && errors.Is(err, fs.ErrNotExist)
			if err != nil && !missing && err.Error() != said {
				log.Warn("the content of the Northbound database is not saved for a restart", "error", err)
				said = err.Error()
			}
		}
	}
}

// lastWords writes what the loop, which has ended, has handed over last, or did not come to.
func (f *Follower) lastWords() {
	m := f.memory
	last, has := m.handedOver()
	m.dirty = m.dirty || last.rows != nil
	f.remember(0)
	if next, more := m.handedOver(); more {
		last, has = next, true
	}
	if !has {
		return
	}
	if err := last.save(m.path); err != nil {
		f.log.Warn("the content of the Northbound database is not saved for a restart", "error", err)
	}
}

// handedOver takes what the writer has not.
func (m *memory) handedOver() (next remembered, has bool) {
	select {
	case next = <-m.write:
		return next, true
	default:
		return remembered{}, false
	}
}

// save writes the file, or, without rows, that it is still right.
func (r remembered) save(path string) error {
	if r.rows == nil {
		return os.Chtimes(path, r.at, r.at)
	}
	r.Rows = map[Table][]json.RawMessage{}
	for _, rows := range r.rows {
		for _, row := range rows {
			text, err := json.Marshal(row)
			if err != nil {
				return err
			}
			r.Rows[row.table()] = append(r.Rows[row.table()], text)
		}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := statefile.WriteRuntime(path, text); err != nil {
		return err
	}
	return os.Chtimes(path, r.at, r.at)
}

// recall takes the rows of the file in the place of those that the Northbound database does
// not tell. Without them, or where they are not for this follower, it does nothing.
func (f *Follower) recall() {
	m := f.memory
	if m.path == "" || f.rows.SystemID() == "" {
		return
	}
	list, until, err := m.read(f.rows.SystemID())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		f.log.Warn("the saved content of the Northbound database is not used", "path", m.path, "error", err)
		return
	}
	f.log.Info("the saved content of the Northbound database is used", "until", until, "rows", len(list))
	m.recalled, m.until = make(map[UUID]Table, len(list)), until
	for _, c := range list {
		m.recalled[c.UUID] = c.Table
	}
	f.apply(list, f.rows, f.loading)
}

func (m *memory) read(systemID string) ([]Change, time.Time, error) {
	info, err := os.Stat(m.path)
	if err != nil {
		return nil, time.Time{}, err
	}
	text, err := os.ReadFile(m.path)
	if err != nil {
		return nil, time.Time{}, err
	}
	var r remembered
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, time.Time{}, err
	}
	switch age := time.Since(info.ModTime()); {
	case r.Boot != m.boot:
		return nil, time.Time{}, errors.New("the node was rebooted since")
	case r.SystemID != systemID:
		return nil, time.Time{}, fmt.Errorf("it is of chassis %q", r.SystemID)
	case r.Layout != m.layout || !reflect.DeepEqual(r.Columns, m.columns):
		return nil, time.Time{}, errors.New("it is of another build, or of other settings")
	case age > memoryFor:
		return nil, time.Time{}, fmt.Errorf("it is %s old", age.Round(time.Second))
	}
	var list []Change
	for table, rows := range r.Rows {
		t, ok := northboundTypes[table]
		if !ok {
			return nil, time.Time{}, fmt.Errorf("table %d", table)
		}
		for _, text := range rows {
			row := reflect.New(t)
			if err := json.Unmarshal(text, row.Interface()); err != nil {
				return nil, time.Time{}, err
			}
			list = append(list, Set(row.Elem().Interface().(Row)))
		}
	}
	return list, info.ModTime(), nil
}

// told takes note of a batch of the database.
func (m *memory) told(list []Change) {
	if len(list) > 0 {
		m.dirty, m.settled = true, false
	}
	for _, c := range list {
		delete(m.recalled, c.UUID)
	}
}

// inSync takes note that the database is in sync, and gives the deletion of those recalled
// rows that it does not have.
func (m *memory) inSync() (gone []Change) {
	m.settled, m.confirmed = true, time.Now()
	for id, table := range m.recalled {
		gone = append(gone, Delete(table, id))
	}
	m.recalled, m.until = nil, time.Time{}
	return gone
}
