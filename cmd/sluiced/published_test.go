package main

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
