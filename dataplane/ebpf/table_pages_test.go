package ebpf

import (
	"reflect"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

func TestPagesFree(t *testing.T) {
	now := time.Unix(0, 0)
	p := &tablePages{now: func() time.Time { return now }}
	check := func(want ...span) {
		t.Helper()
		if len(p.free)+len(want) > 0 && !reflect.DeepEqual(p.free, want) {
			t.Fatalf("free are %v, want %v", p.free, want)
		}
	}
	p.release(span{100, 10})
	p.wake()
	check()
	now = now.Add(restTime)
	p.release(span{120, 10})
	p.wake()
	check(span{100, 10})
	now = now.Add(restTime)
	p.wake()
	check(span{100, 10}, span{120, 10})
	p.add(span{110, 10})
	check(span{100, 30})
	// What is on two pages stays apart.
	p.add(span{pageWords, 5})
	p.add(span{pageWords - 5, 5})
	check(span{100, 30}, span{pageWords - 5, 5}, span{pageWords, 5})
}

func TestPagesSettle(t *testing.T) {
	p := &tablePages{mappedPages: &mappedPages{pages: make([]*ebpf.Memory, 2)}}
	p.settle([]span{{pageWords - 10, 10}, {1, 4}, {20, 5}})
	if want := []span{{5, 15}, {25, pageWords - 35}, {pageWords, pageWords}}; !reflect.DeepEqual(p.free, want) {
		t.Errorf("free are %v, want %v", p.free, want)
	}
}
