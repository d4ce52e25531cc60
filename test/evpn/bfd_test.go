package evpn_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/status"
	"github.com/ovn-sluice/sluice/test/lab"
)

// bgp is what "sluicectl bgp neighbors" says of a node's only neighbour.
func (w *world) bgp(node string) (status.Neighbor, error) {
	all, err := w.neighbors(node)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("neighbours %+v", all)
	}
	if err != nil {
		return status.Neighbor{}, err
	}
	return all[0], nil
}

// neighbors is what "sluicectl bgp neighbors" says, in the order of the configuration.
func (w *world) neighbors(node string) ([]status.Neighbor, error) {
	out, err := w.Exec(w.Context(), node, sluicectl(), "bgp", "neighbors", "-o", "json")
	if err != nil {
		return nil, err
	}
	var b status.BGP
	if err := json.Unmarshal([]byte(out), &b); err != nil {
		return nil, fmt.Errorf("%w in %s", err, out)
	}
	return b.Neighbors, nil
}

// rests waits until a node's only session is up and has had no UPDATE to send for a second: what
// an earlier restart still has to say is not counted as what comes after.
func (w *world) rests(node string) (rested status.Neighbor) {
	w.Helper()
	var since time.Time
	w.eventually("the session of "+node+" rests", func() error {
		now, err := w.bgp(node)
		if err != nil {
			return err
		}
		if now.State != "established" || now.MessagesOut != rested.MessagesOut || since.IsZero() {
			rested, since = now, time.Now()
		}
		if time.Since(since) < time.Second {
			return fmt.Errorf("%s, %d UPDATEs", now.State, now.MessagesOut)
		}
		return nil
	})
	return rested
}

// configured runs sluiced anew with another configuration of its neighbour.
func (w *world) configured(node, neighbor string) {
	w.Helper()
	w.kill(node, "sluiced")
	text := strings.Replace(lab.Config, "    - address: %s\n", neighbor, 1)
	if _, err := w.StartSluiced(w.Context(), node, lab.Sluiced{Binary: filepath.Join(bin, "sluiced"), Config: text}); err != nil {
		w.Fatal(err)
	}
	w.ready(node)
}

// BFD with the reflector, over a router: it comes up, a cut of the underlay ends the
// BGP session by it, and all comes back.
func TestBFD(t *testing.T) {
	w := shared(t)
	n, rr := w.node("a1"), w.node("rr").VTEP4
	defer func() { // a cleanup would have no context
		if err := w.ReflectorBFD(w.Context(), "rr", n.VTEP4, false); err != nil {
			t.Error(err)
		}
		w.configured("a1", fmt.Sprintf("    - address: %s\n", rr))
	}()
	w.configured("a1", fmt.Sprintf("    - {address: %s, localAddress: %s, bfd: {enabled: true, multihop: true, minTTL: 254, minTx: 200ms, minRx: 200ms, multiplier: 10}}\n", rr, n.VTEP4))
	if err := w.ReflectorBFD(w.Context(), "rr", n.VTEP4, true); err != nil {
		t.Fatal(err)
	}
	up := func() error {
		b, err := w.bgp("a1")
		if err == nil && (b.State != "established" || b.BFD == nil || b.BFD.Path != "up" || b.BFD.DetectionUs != 2_000_000) {
			err = fmt.Errorf("%+v with BFD %+v", b, b.BFD)
		}
		return err
	}
	w.eventually("BFD is up", up)
	if peers := w.exec("rr", "vtysh", "-d", "bfdd", "-c", "show bfd peers brief"); !strings.Contains(peers, n.VTEP4.String()) {
		t.Errorf("FRR has BFD with %s", peers)
	}
	w.cutUnderlay("a1")
	w.eventually("BFD has ended the session", func() error {
		b, err := w.bgp("a1")
		if err == nil && (b.State == "established" || !strings.HasPrefix(b.LastError, "BFD has lost the path to the neighbour")) {
			err = fmt.Errorf("%s, %s", b.State, b.LastError)
		}
		return err
	})
	w.eventually("the status names it", func() error {
		s, err := w.status("a1")
		if err == nil && !slices.ContainsFunc(s.Problems, func(o status.Object) bool { return o.Kind == "neighbor" && o.Reason == "bfd-down" }) {
			err = fmt.Errorf("problems %+v", s.Problems)
		}
		return err
	})
	metric := fmt.Sprintf(`sluice_bfd_flaps_total{neighbor="%s"} 1`, rr)
	if text := w.exec("a1", "curl", "-sS", "http://127.0.0.1:9476/metrics"); !strings.Contains(text, metric) {
		t.Errorf("no %s among the metrics", metric)
	}
	w.mendUnderlay("a1")
	w.eventually("BFD is up again", up)
	w.connected()
	w.clean()
}

func (w *world) cutUnderlay(node string) {
	w.Helper()
	w.exec(node, "ip", "link", "set", lab.UnderlayLink, "down")
}

// mendUnderlay sets the link up again.
func (w *world) mendUnderlay(node string) {
	w.Helper()
	if err := w.linkUp(w.Context(), node); err != nil {
		w.Fatal(err)
	}
}

// linkUp also gives back what the kernel took away with the link: routes through
// it, and IPv6 addresses.
func (w *world) linkUp(ctx context.Context, node string) error {
	n, err := w.Node(node)
	if err != nil {
		return err
	}
	if _, err := w.Exec(ctx, node, "ip", "link", "set", lab.UnderlayLink, "up"); err != nil {
		return err
	}
	_, err = w.Exec(ctx, node, "sh", "-c", fmt.Sprintf(
		"ip addr replace fd29:%[1]d::2/64 dev %[2]s nodad; ip route replace 172.30.0.0/16 via 172.29.%[1]d.1 src %[3]s; ip route replace fd30::/64 via fd29:%[1]d::1 src %[4]s",
		n.Index, lab.UnderlayLink, n.VTEP4, n.VTEP6))
	return err
}
