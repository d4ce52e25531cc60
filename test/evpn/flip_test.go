package evpn_test

import (
	"fmt"
	"testing"
	"time"
)

// flip is what was lost while red's VRF changed its path.
type flip struct {
	// red has one stream for each family, blue one. Control is of VMs of one network on
	// two chassis: their packets pass the same switches and no part of Sluice. Still is how
	// long the test itself did not run, though it was to run all the time.
	red     [2]int
	blue    int
	control [2]int
	still   time.Duration
}

const (
	// flipLoss is what a stream of the VRF that changes its path may lose.
	flipLoss = 2
	// mostDisturbed flips may say nothing.
	mostDisturbed = 3
	// mostStill is how long an emulated processor may stand still: no keepalive of BGP goes
	// meanwhile, of which one is due each 3 s. Neighbours withdraw the routes of everybody after 9 s.
	mostStill = 3 * time.Second
)

// disturbed tells that the flip says nothing: packets were lost that Sluice does not touch, or the
// machine stood still. Only the controls decide that, never what red and blue have lost.
func (f flip) disturbed() bool { return f.control != [2]int{} || f.still > mostStill }

// problem is what is wrong with a flip that was not disturbed, or "".
func (f flip) problem() string {
	if f.red[0] > flipLoss || f.red[1] > flipLoss || f.blue > 0 {
		return fmt.Sprintf("lost are %d and %d of red, at most %d may be, and %d of blue, none may be", f.red[0], f.red[1], flipLoss, f.blue)
	}
	return ""
}

// judge looks at the flips of one change in their order, and tells whether it has to be
// made once more. Each disturbed one is told of by note.
func judge(flips []flip, note func(string)) (again bool, problem string) {
	last := flips[len(flips)-1]
	if !last.disturbed() {
		return false, last.problem()
	}
	note(fmt.Sprintf("disturbed, %d of at most %d: the control lost %v, and the machine stood still for %v; masked are red's %v and blue's %d",
		len(flips), mostDisturbed, last.control, last.still.Round(time.Millisecond), last.red, last.blue))
	if len(flips) < mostDisturbed {
		return true, ""
	}
	return false, fmt.Sprintf("nothing is known: each of %d flips was disturbed by what Sluice does not touch: %+v", len(flips), flips)
}

// standstill measures until it is stopped for how long at once a goroutine does not run that is due
// every few milliseconds.
func standstill() (stop func() time.Duration) {
	end, longest := make(chan struct{}), make(chan time.Duration)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		most, last := time.Duration(0), time.Now()
		for {
			select {
			case <-end:
				longest <- most
				return
			case <-tick.C:
			}
			now := time.Now()
			most, last = max(most, now.Sub(last)), now
		}
	}()
	return func() time.Duration { close(end); return <-longest }
}

func TestJudge(t *testing.T) {
	good := flip{red: [2]int{2, 0}}
	bad := flip{blue: 1}
	slow := flip{red: [2]int{0, 3}}
	// What others lose changes nothing of it.
	disturbed := flip{control: [2]int{0, 1}}
	worse := flip{control: [2]int{1, 0}, blue: 500, red: [2]int{7, 7}}
	for name, row := range map[string]struct {
		flips   []flip
		again   bool
		problem bool
		notes   int
	}{
		"good":                       {[]flip{good}, false, false, 0},
		"blue lost a packet":         {[]flip{bad}, false, true, 0},
		"red lost three":             {[]flip{slow}, false, true, 0},
		"disturbed":                  {[]flip{disturbed}, true, false, 1},
		"disturbed, and worse":       {[]flip{worse}, true, false, 1},
		"stood still":                {[]flip{{still: mostStill + 1, blue: 377}}, true, false, 1},
		"stood still for a moment":   {[]flip{{still: mostStill, blue: 1}}, false, true, 0},
		"disturbed once, then blue":  {[]flip{disturbed, bad}, false, true, 0},
		"disturbed twice, then good": {[]flip{disturbed, worse, good}, false, false, 0},
		"disturbed each time":        {[]flip{disturbed, worse, disturbed}, false, true, 1},
	} {
		notes := 0
		again, problem := judge(row.flips, func(string) { notes++ })
		if again != row.again || (problem != "") != row.problem || notes != row.notes {
			t.Errorf("%s: again %t, problem %q, %d notes", name, again, problem, notes)
		}
	}
}

func TestStandstill(t *testing.T) {
	stop := standstill()
	time.Sleep(100 * time.Millisecond)
	if d := stop(); d <= 0 || d > time.Minute {
		t.Errorf("it stood still for %s", d)
	}
}
