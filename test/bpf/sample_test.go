package bpf_test

import (
	"bytes"
	"context"
	"os"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/dataplane/ebpf"
	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/intent"
)

func TestSamples(t *testing.T) {
	dir := bpffs(t)
	d := defaultWorld(t, dir)
	in, under := fromFabric(in4("10.20.0.9", "10.10.0.66")), fromUnderlay(under4("127.0.0.1", "203.0.113.5"))
	for _, p := range []ebpf.TraceRequest{in, under} {
		if _, _, _, err := tracer(t, dir).Run(p, 1); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var got []ebpf.Sample
	if err := d.Reader().Samples(ctx, func(s ebpf.Sample) {
		if got = append(got, s); len(got) == 2 {
			cancel()
		}
	}, func(err error) { t.Error(err) }); err != context.Canceled {
		t.Fatal(err)
	}
	s := got[0]
	if s.Reason != drop.Blocked || s.VNI != red || s.Program != ebpf.FabricIn || s.Len != len(in.Frame) || !bytes.Equal(s.Frame, in.Frame) {
		t.Errorf("sample %+v", s)
	}
	s = got[1]
	if s.Reason != drop.Martian || s.VNI != intent.DefaultVRF || s.Program != ebpf.UnderlayIn || !bytes.Equal(s.Frame, under.Frame) {
		t.Errorf("sample %+v", s)
	}
}

func TestRemove(t *testing.T) {
	dir := bpffs(t)
	d := world(t, dir, node())
	if err := ebpf.Remove(dir, ebpf.Fabric); err == nil {
		t.Error("the pins were removed while the directory is in use")
	}
	d.Close()
	pins, err := ebpf.Pins(dir, ebpf.Fabric)
	if err != nil || len(pins) < 20 {
		t.Errorf("%d pins, %v", len(pins), err)
	}
	if err := ebpf.Remove(dir, ebpf.Fabric); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the directory is still there: %v", err)
	}
}
