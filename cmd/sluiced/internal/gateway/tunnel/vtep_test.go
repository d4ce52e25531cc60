package tunnel

import (
	"log/slog"
	"net/netip"
	"testing"

	"go.uber.org/goleak"

	"github.com/ovn-sluice/sluice/pkg/reason"
	"github.com/ovn-sluice/sluice/pkg/status"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// still is a node on which nothing happens.
type still struct{}

func (still) ToldWanted() bool { return false }
func (still) Imported() bool   { return false }
func (still) GateChanged()     {}
func (still) VTEPChanged()     {}

// A VTEP that is lost is a problem of the node until its gateway ends, and no more from then on:
// whoever follows the node's addresses may look after that.
func TestLostVTEPOfAGatewayThatHasEnded(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	for _, vtep := range []string{"192.0.2.77", "2001:db8::77"} {
		reg := status.NewRegistry(log)
		made := func() *Tunnel {
			return New(Config{VTEP: netip.MustParseAddr(vtep)}, nil, still{}, nil, nil, reg, log)
		}
		works, ended := made(), made()
		works.LookAtVTEP(nil)
		if o, told := reg.Get(hostReports, "vtep", vtep); !told || o.Reason != reason.NoVTEP {
			t.Errorf("%s: %+v", vtep, o)
		}
		works.Forget("the programs")
		if p := reg.Problems(); len(p) != 0 {
			t.Errorf("%s: after the end %+v", vtep, p)
		}
		ended.Forget("the programs")
		ended.LookAtVTEP(nil)
		if p := reg.Problems(); len(p) != 0 {
			t.Errorf("%s: looked at after the end: %+v", vtep, p)
		}
	}
}
