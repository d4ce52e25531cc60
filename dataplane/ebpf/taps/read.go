package taps

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/ebpf/pinned"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// Reader reads what is pinned.
type Reader struct {
	dir  string
	hook pinned.Hook
	maps map[string]*ebpf.Map // those that are missing have no rows
}

// Inspect opens what is pinned in a directory for reading only, as it is before Load;
// anything of it may be missing, and another process may be writing it. The kernel
// refuses every write to its maps.
func Inspect(dir string, hook pinned.Hook) (*Reader, error) {
	r := &Reader{dir: dir, hook: hook.Pick(), maps: map[string]*ebpf.Map{}}
	if err := r.open(); err != nil {
		r.Close()
		return nil, fmt.Errorf("metadata programs in %s: %w", dir, err)
	}
	return r, nil
}

func (r *Reader) open() error {
	specs, err := mapSpecs()
	if err != nil {
		return err
	}
	if _, err := os.Stat(r.dir); errors.Is(err, fs.ErrNotExist) {
		return pinned.OnBPFFS(filepath.Dir(r.dir))
	}
	if err := pinned.OnBPFFS(r.dir); err != nil {
		return err
	}
	if _, err := pinned.Older(r.dir, specs); err != nil {
		return err
	}
	for name, spec := range specs {
		m, err := ebpf.LoadPinnedMap(filepath.Join(r.dir, name), &ebpf.LoadPinOptions{ReadOnly: true})
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("map %s: %w", name, err)
		}
		r.maps[name] = m
		if err := fits(m, spec); err != nil {
			return fmt.Errorf("map %s %w", name, err)
		}
	}
	return nil
}

// Close lets go of the maps.
func (r *Reader) Close() error {
	for _, m := range r.maps {
		m.Close()
	}
	return nil
}

// row reads the one row of an array; false: the map is not there.
func (r *Reader) row(name string, to any) (bool, error) {
	m := r.maps[name]
	if m == nil {
		return false, nil
	}
	if err := m.Lookup(uint32(0), to); err != nil {
		return false, fmt.Errorf("map %s: %w", name, err)
	}
	return true, nil
}

// Proxy is what SetProxy said; the zero value: nothing.
func (r *Reader) Proxy() (Proxy, error) {
	var row bpfProxy
	_, err := r.row(bpfMapProxyV1, &row)
	return Proxy{Host: row.Ifindex, HostMAC: row.Host, Inside: row.Inside}, err
}

// HeartbeatAge is how long ago the proxy gave its last sign of life; not ok: never.
func (r *Reader) HeartbeatAge() (age time.Duration, ok bool, err error) {
	var at uint64
	if ok, err = r.row(bpfMapHeartbeatV1, &at); err != nil || !ok || at == 0 {
		return 0, false, err
	}
	now, err := monotonic()
	return time.Duration(now - at), err == nil, err
}

// monotonic is what bpf_ktime_get_ns gives.
func monotonic() (uint64, error) {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0, fmt.Errorf("read the monotonic clock: %w", err)
	}
	return uint64(now.Nano()), nil
}

// Sources lists everybody who has a row. It gives back what Put was given; a source of
// which a row is missing or differs is listed without Answer. One whose forward row leads
// to the number of another is there twice: as what that row says, and as what the
// number's says.
func (r *Reader) Sources() ([]Source, error) {
	v, err := r.view()
	if err != nil {
		return nil, err
	}
	out := make([]Source, 0, len(v.numbers))
	for number, row := range v.numbers {
		s := sourceOf(number, row)
		if !v.complete(s) {
			s.Answer = intent.MAC{}
		}
		out = append(out, s)
	}
	for k, g := range v.guests4 {
		if s := sourceOf4(k, g); !v.back(s) {
			out = append(out, s)
		}
	}
	for k, g := range v.guests6 {
		if s := sourceOf6(k, g); !v.back(s) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b Source) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.IfIndex, b.IfIndex), cmp.Compare(a.VLAN, b.VLAN), a.Addr.Compare(b.Addr))
	})
	return out, nil
}

// view is what all maps say at one time.
type view struct {
	numbers map[uint32]bpfSource
	guests4 map[bpfGuest4Key]bpfGuest4
	guests6 map[bpfGuest6Key]bpfGuest6
	taps    map[bpfTapKey]bpfTap
}

func (r *Reader) view() (v view, err error) {
	if v.numbers, err = rows[uint32, bpfSource](r, bpfMapNumbersV1); err != nil {
		return v, err
	}
	if v.guests4, err = rows[bpfGuest4Key, bpfGuest4](r, bpfMapGuests4V1); err != nil {
		return v, err
	}
	if v.guests6, err = rows[bpfGuest6Key, bpfGuest6](r, bpfMapGuests6V1); err != nil {
		return v, err
	}
	v.taps, err = rows[bpfTapKey, bpfTap](r, bpfMapTapsV1)
	return v, err
}

func rows[K comparable, V any](r *Reader, name string) (map[K]V, error) {
	out := map[K]V{}
	if _, err := pinned.Walk(r.maps[name], func(k K, v V) { out[k] = v }); err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	return out, nil
}

// complete tells whether all rows of a source of numbers are there.
func (v view) complete(s Source) bool {
	if v.taps[s.tap()] != (bpfTap{Answer: s.Answer}) {
		return false
	}
	if s.Addr.IsValid() {
		return v.guests4[s.key4()] == bpfGuest4{Number: s.Number, Mac: s.MAC}
	}
	return v.guests6[s.key6()] == bpfGuest6{Number: s.Number}
}

// back tells whether the way back of what a forward row says is its own.
func (v view) back(s Source) bool {
	row, ok := v.numbers[s.Number]
	return ok && sourceOf(s.Number, row).guest() == s.guest()
}
