package ebpf

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

func TestSlotsRest(t *testing.T) {
	now := time.Unix(0, 0)
	s := newSlots[string](3)
	s.now = func() time.Time { return now }
	a, fresh, err := s.acquire("a")
	if err != nil || !fresh || a == 0 {
		t.Fatal(a, fresh, err)
	}
	if again, fresh, _ := s.acquire("a"); again != a || fresh {
		t.Fatal("a second reference took another row")
	}
	b, _, _ := s.acquire("b")
	if _, _, err := s.acquire("c"); !errors.Is(err, ErrFull) {
		t.Fatal(err)
	}
	if s.release(a) || !s.release(a) || s.used() != 1 {
		t.Fatal("the last reference frees a row, and only the last")
	}
	if _, _, err := s.acquire("c"); !errors.Is(err, ErrFull) {
		t.Fatalf("a row was reused at once: %v", err)
	}
	now = now.Add(restTime)
	if c, _, err := s.acquire("c"); err != nil || c != a || c == b {
		t.Fatal(c, err)
	}
}

func TestSlotsSettle(t *testing.T) {
	s := newSlots[string](10)
	s.adopt(5, "five")
	s.adopt(7, "seven")
	s.retain(7)
	if unused := s.settle(); len(unused) != 1 || unused[0] != 5 {
		t.Fatal(unused)
	}
	seen := map[uint32]bool{7: true}
	for i := range 8 {
		row, _, err := s.acquire(string(rune('a' + i)))
		if err != nil || seen[row] {
			t.Fatalf("row %d: %v", row, err)
		}
		seen[row] = true
	}
}

// A clearing that failed and a crash leave two rows of one key.
func TestSlotsSettleTwoRowsOfOneKey(t *testing.T) {
	for _, used := range []uint32{3, 5} {
		s := newSlots[string](10)
		s.adopt(3, "key")
		s.adopt(5, "key")
		s.retain(used)
		if unused := s.settle(); len(unused) != 1 || unused[0] == used {
			t.Fatal(unused)
		}
		if row, fresh, err := s.acquire("key"); row != used || fresh || err != nil {
			t.Errorf("row %d, fresh %t, %v; the key has row %d", row, fresh, err, used)
		}
	}
}

func TestFillSlotsLeavesNoHopOut(t *testing.T) {
	var hops []intent.NextHop
	for i := range intent.MaxNextHops {
		hops = append(hops, intent.NextHop{VTEP: netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), VNI: 1})
		seen := map[uint8]int{}
		for _, member := range fillSlots(hops) {
			seen[member]++
		}
		if len(seen) != len(hops) {
			t.Errorf("%d of %d next hops have a slot", len(seen), len(hops))
		}
	}
}

func FuzzParseSample(f *testing.F) {
	f.Add(make([]byte, 160))
	f.Add([]byte("short"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := parseSample(raw)
		if err == nil && len(s.Frame) > 128 {
			t.Errorf("%d bytes of a packet", len(s.Frame))
		}
	})
}
