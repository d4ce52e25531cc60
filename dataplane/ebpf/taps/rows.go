package taps

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/ovn-sluice/sluice/dataplane/metadata/identity"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

// ErrFull is wrapped when a map has no room for another source.
var ErrFull = errors.New("the map is full")

// maxVLAN is the last identifier that is not reserved (IEEE 802.1Q).
const maxVLAN = 4094

func (s Source) check() error {
	var errs []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(s.IfIndex == 0, "there is no device 0")
	bad(s.VLAN > maxVLAN, "there is no VLAN %d", s.VLAN)
	bad(!unicast(s.MAC), "MAC %s is not a unicast address", s.MAC)
	bad(!unicast(s.Answer), "MAC %s of the answers is not a unicast address", s.Answer)
	bad(s.Addr.IsValid() && (!s.Addr.Is4() || s.Addr.IsUnspecified()), "%s is no IPv4 address of a guest", s.Addr)
	bad(s.Number == 0 || s.Number > uint32(identity.Max), "the number %d is none of 1 to %d", s.Number, identity.Max)
	return errors.Join(errs...)
}

func unicast(m intent.MAC) bool { return !m.IsZero() && m[0]&1 == 0 }

// guest is the source without its number and answer: what the forward row's key says, and
// of IPv4 not the MAC address, which that row holds.
func (s Source) guest() Source {
	s.Number, s.Answer = 0, intent.MAC{}
	if s.Addr.IsValid() {
		s.MAC = intent.MAC{}
	}
	return s
}

func (s Source) tap() bpfTapKey { return bpfTapKey{Ifindex: s.IfIndex, Vlan: s.VLAN} }

func (s Source) key4() bpfGuest4Key {
	return bpfGuest4Key{Ifindex: s.IfIndex, Vlan: s.VLAN, Addr: be32(s.Addr)}
}

func (s Source) key6() bpfGuest6Key {
	return bpfGuest6Key{Ifindex: s.IfIndex, Vlan: s.VLAN, Mac: s.MAC}
}

func (s Source) row() bpfSource {
	row := bpfSource{Ifindex: s.IfIndex, Vlan: s.VLAN, Mac: s.MAC, Answer: s.Answer}
	if s.Addr.IsValid() {
		row.Addr4 = be32(s.Addr)
	}
	return row
}

func sourceOf(number uint32, row bpfSource) Source {
	return Source{IfIndex: row.Ifindex, VLAN: row.Vlan, MAC: row.Mac, Addr: fromBE32(row.Addr4), Number: number, Answer: row.Answer}
}

func sourceOf4(k bpfGuest4Key, g bpfGuest4) Source {
	return Source{IfIndex: k.Ifindex, VLAN: k.Vlan, MAC: g.Mac, Addr: fromBE32(k.Addr), Number: g.Number}
}

func sourceOf6(k bpfGuest6Key, g bpfGuest6) Source {
	return Source{IfIndex: k.Ifindex, VLAN: k.Vlan, MAC: k.Mac, Number: g.Number}
}

// be32 is an IPv4 address as the programs' __be32: its bytes in wire order.
func be32(a netip.Addr) uint32 {
	b := a.As4()
	return binary.NativeEndian.Uint32(b[:])
}

// fromBE32 is invalid for 0, which is the row of a number of IPv6.
func fromBE32(v uint32) netip.Addr {
	if v == 0 {
		return netip.Addr{}
	}
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], v)
	return netip.AddrFrom4(b)
}

// index finds out which numbers each tap has.
func (t *Taps) index() error {
	numbers, err := rows[uint32, bpfSource](t.Reader, bpfMapNumbersV1)
	if err != nil {
		return err
	}
	for number, row := range numbers {
		t.add(sourceOf(number, row))
	}
	return nil
}

func (t *Taps) add(s Source) {
	if t.behind[s.tap()] == nil {
		t.behind[s.tap()] = map[uint32]struct{}{}
	}
	t.behind[s.tap()][s.Number] = struct{}{}
}

// Put makes a source known, or changes its answer. Of a number that stands for another
// source it makes none: Remove that one first.
func (t *Taps) Put(s Source) error {
	if err := s.check(); err != nil {
		return fmt.Errorf("metadata source: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.put(s); err != nil {
		return fmt.Errorf("metadata source %d of device %d: %w", s.Number, s.IfIndex, err)
	}
	return nil
}

func (t *Taps) put(s Source) error {
	was, ok, err := t.number(s.Number)
	if err != nil {
		return err
	}
	if ok && (was.guest() != s.guest() || was.MAC != s.MAC) {
		return fmt.Errorf("the number stands for %s %s of device %d, VLAN %d", was.MAC, was.Addr, was.IfIndex, was.VLAN)
	}
	// The way back, then what the tap answers, then the way there.
	if err := t.set(bpfMapNumbersV1, s.Number, s.row()); err != nil {
		return err
	}
	t.add(s)
	if err := t.set(bpfMapTapsV1, s.tap(), bpfTap{Answer: s.Answer}); err != nil {
		return err
	}
	if s.Addr.IsValid() {
		return t.set(bpfMapGuests4V1, s.key4(), bpfGuest4{Number: s.Number, Mac: s.MAC})
	}
	return t.set(bpfMapGuests6V1, s.key6(), bpfGuest6{Number: s.Number})
}

// number is what a number stands for.
func (t *Taps) number(n uint32) (s Source, ok bool, err error) {
	var row bpfSource
	ok, err = t.get(bpfMapNumbersV1, n, &row)
	return sourceOf(n, row), ok, err
}

// Remove forgets a source: requests of the guest go on to Open vSwitch, and what the proxy
// still sends to the number is dropped. One that is not there, or whose rows are
// another's, is no error.
func (t *Taps) Remove(s Source) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.remove(s); err != nil {
		return fmt.Errorf("metadata source %d of device %d: %w", s.Number, s.IfIndex, err)
	}
	return nil
}

// remove goes the way of put back.
func (t *Taps) remove(s Source) error {
	if err := t.removeForward(s); err != nil {
		return err
	}
	was, ok, err := t.number(s.Number)
	if err != nil {
		return err
	}
	ours := ok && was.guest() == s.guest()
	left := len(t.behind[s.tap()])
	if _, counted := t.behind[s.tap()][s.Number]; counted && ours {
		left--
	}
	if left == 0 {
		if err := t.unset(bpfMapTapsV1, s.tap()); err != nil {
			return err
		}
	}
	if !ours {
		return nil
	}
	if err := t.unset(bpfMapNumbersV1, s.Number); err != nil {
		return err
	}
	delete(t.behind[s.tap()], s.Number)
	if left == 0 {
		delete(t.behind, s.tap())
	}
	return nil
}

// removeForward removes the row that leads to the number, and not one to another.
func (t *Taps) removeForward(s Source) error {
	if !s.Addr.IsValid() {
		var g bpfGuest6
		ok, err := t.get(bpfMapGuests6V1, s.key6(), &g)
		if err != nil || !ok || g.Number != s.Number {
			return err
		}
		return t.unset(bpfMapGuests6V1, s.key6())
	}
	var g bpfGuest4
	ok, err := t.get(bpfMapGuests4V1, s.key4(), &g)
	if err != nil || !ok || g.Number != s.Number {
		return err
	}
	return t.unset(bpfMapGuests4V1, s.key4())
}

func (t *Taps) set(name string, key, value any) error {
	err := t.maps[name].Put(key, value)
	if errors.Is(err, unix.E2BIG) {
		err = ErrFull
	}
	if err != nil {
		return fmt.Errorf("map %s: %w", name, err)
	}
	return nil
}

func (t *Taps) unset(name string, key any) error {
	if err := t.maps[name].Delete(key); err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("map %s: %w", name, err)
	}
	return nil
}

func (t *Taps) get(name string, key, to any) (bool, error) {
	err := t.maps[name].Lookup(key, to)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("map %s: %w", name, err)
	}
	return true, nil
}
