package health

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

// looks is a map in which a row is another one after some looks at it.
type looks struct {
	left int
	key  string
}

func (l *looks) LookupBytes(key any) ([]byte, error) {
	if k, ok := key.([]byte); !ok || string(k) != l.key {
		return nil, nil
	}
	l.left--
	table := uint32(7)
	if l.left < 0 {
		table = 8
	}
	return append(binary.NativeEndian.AppendUint32(nil, table), make([]byte, 16)...), nil
}

func (l *looks) Close() error { return nil }

func TestChange(t *testing.T) {
	const scope = intent.VNI(1001)
	// One has changed when the database answers, the other does later.
	at := string(vipKey(scope, vip(3)))
	soon, late := &looks{left: 1, key: at}, &looks{left: 20, key: at}
	tables := []*table{{name: "the gateway", rows: soon, scope: scope}, {name: "taps", rows: late, scope: scope}}
	writes := 0
	if _, err := change(t.Context(), tables, 3, func() error { writes++; return nil }); err != nil {
		t.Fatal(err)
	}
	if writes != 1 || len(tables[0].took) != 1 || len(tables[1].took) != 1 || tables[0].took[0] > tables[1].took[0] {
		t.Errorf("%d writes; %v and %v", writes, tables[0].took, tables[1].took)
	}
	if _, err := change(t.Context(), tables, 4, func() error { return nil }); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("a VIP that is not there: %v", err)
	}
	broken := errors.New("broken")
	if _, err := change(t.Context(), tables, 3, func() error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a database that fails: %v", err)
	}
}

func TestVIPKey(t *testing.T) {
	const want = "\x01\x02\x03\x00" + "\x00\x50" + "\x06\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x0a\x62\x01\x02"
	if got := vipKey(0x030201, vip(258)); string(got) != want {
		t.Errorf("%x, want %x", got, want)
	}
}

// No VIP shares its address or its backends with another one.
func TestBalancers(t *testing.T) {
	seen := map[string]bool{}
	for _, i := range []int{0, 1, 255, 256, mostVIPs - 1} {
		for _, word := range balancer(i) {
			if strings.HasPrefix(word, "vips:") && seen[word] {
				t.Errorf("%s comes twice", word)
			}
			seen[word] = true
		}
	}
	if firstPort+mostVIPs > 1<<16 {
		t.Error("there are no ports for so many")
	}
}
