package metadata

import (
	"testing"
	"time"
)

// What serves a network waits as long as the key has it and should not, and not for ever.
func TestLeavingTheKey(t *testing.T) {
	p := publishedNetworks{leaving: map[string]time.Time{}}
	expect := func(what string, left, wantLeft, red, blue bool) {
		t.Helper()
		if left != wantLeft || p.inKey("red") != red || p.inKey("blue") != blue {
			t.Errorf("%s: left %t, red waits %t, blue %t", what, left, p.inKey("red"), p.inKey("blue"))
		}
	}
	expect("at first", p.leave(nil, []string{"red"}), false, false, false)
	expect("both are wanted", p.leave([]string{"red", "blue"}, []string{"blue", "red"}), false, false, false)
	expect("red goes", p.leave([]string{"red", "blue"}, []string{"blue"}), false, true, false)
	expect("the key has it still", p.leave([]string{"red", "blue"}, []string{"blue"}), false, true, false)
	expect("the key has it no more", p.leave([]string{"blue"}, []string{"blue"}), true, false, false)
	expect("blue goes", p.leave([]string{"blue"}, nil), false, false, true)
	expect("and is wanted again", p.leave([]string{"blue"}, []string{"blue"}), true, false, false)
	expect("it goes", p.leave([]string{"blue"}, nil), false, false, true)
	p.leaving["blue"] = time.Now().Add(-leavePatience)
	expect("the key keeps it", p.leave([]string{"blue"}, nil), true, false, false)
	expect("for long", p.leave([]string{"blue"}, nil), false, false, false)
	expect("and no more", p.leave(nil, nil), true, false, false)
}

// The key is looked at often for some time after a change, and seldom then: what is wanted may
// not be served for long.
func TestLooksAtTheKeyComeSoonForSomeTime(t *testing.T) {
	now, s := time.Now(), settling{}
	expect := func(what string, soon bool) {
		t.Helper()
		if s.soon(now) != soon {
			t.Errorf("%s: soon %t", what, !soon)
		}
	}
	expect("at first", false)
	s.see(false, []string{"red"}, now)
	expect("red is wanted", true)
	now = now.Add(settlePatience)
	s.see(false, []string{"red"}, now)
	expect("red is not served", false)
	s.see(false, []string{"blue", "red"}, now)
	expect("blue is wanted", true)
	s.see(true, []string{"blue", "red"}, now)
	expect("both are served", false)
}
