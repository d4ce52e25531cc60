package moves

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// What the first of many moves leaves is looked at although others follow it.
func TestMovesThatFollowEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		moved := make(chan struct{}, 1)
		var looks atomic.Int32
		go AfterMoves(ctx, moved, 5*time.Second, func() { looks.Add(1) })
		for range 10 {
			moved <- struct{}{}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if n := looks.Load(); n < 5 || n > 6 { // at 5, 6, 7, 8, 9 and 10 s
			t.Errorf("%d looks while moves follow each other", n)
		}
		time.Sleep(4 * time.Second) // 14 s: the last one is over
		synctest.Wait()
		before := looks.Load()
		if before < 9 || before > 10 {
			t.Errorf("%d looks after the last one", before)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := looks.Load(); n != before {
			t.Errorf("%d looks without a move", n-before)
		}
		cancel()
	})
}
