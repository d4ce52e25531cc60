package lab_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"github.com/ovn-sluice/sluice/test/lab"
)

func TestUp(t *testing.T) {
	l, err := lab.Up(context.Background(), lab.EVPN(lab.EVPNParams{}), lab.Options{Name: "t1", KeepLogs: true, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Down()
	for _, ip := range []string{"10.10.0.1", "fd00:10::1", "10.10.0.12", "fd00:10::12"} {
		out, err := l.Exec(context.Background(), "a-red1", "ping", "-c2", "-i0.2", "-W2", ip)
		t.Log(out, err)
		if err != nil {
			t.Fail()
		}
	}
	out, err := l.Exec(context.Background(), "rr", "vtysh", "-c", "show bgp l2vpn evpn summary")
	t.Log(out, err)
}
