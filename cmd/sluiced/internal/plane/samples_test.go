package plane

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type fakeSamples struct{ n int }

func (f *fakeSamples) Samples(_ context.Context, each func(ebpf.Sample), unreadable func(error)) error {
	for range f.n {
		unreadable(errors.New("a sample of 3 bytes"))
	}
	each(ebpf.Sample{VNI: 1001})
	return context.Canceled
}

func TestUnreadableSamplesAreCountedAndPassedOver(t *testing.T) {
	var s Samples
	var log strings.Builder
	follow, end := s.Follow()
	defer end()
	if err := s.Run(t.Context(), &fakeSamples{3}, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	if got := <-follow; got.VNI != 1001 || s.unreadable.Load() != 3 || strings.Count(log.String(), "\n") != 1 {
		t.Errorf("sample %+v, %d unreadable, log\n%s", got, s.unreadable.Load(), &log)
	}
}
