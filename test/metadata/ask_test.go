package metadata_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/ovn-sluice/sluice/pkg/netns"
	"github.com/ovn-sluice/sluice/test/lab"
	"github.com/ovn-sluice/sluice/test/nova"
)

// family is one of the two ways to ask.
type family string

const (
	ipv4 family = "IPv4"
	ipv6 family = "IPv6"
)

var families = []family{ipv4, ipv6}

// question is a request of a VM.
type question struct {
	vm     string
	family family
	// link is where IPv6 goes; empty: eth0.
	link string
	// method is GET, path instancePath, if empty.
	method, path string
	body         []byte
	header       http.Header
	// from is the source; its address may be unset, and its port 0.
	from netip.AddrPort
	// patience is the lab's if 0.
	patience time.Duration
}

// soon is how long it is waited for one answer where there are more attempts.
func soon() time.Duration { return lab.Patience() / 12 }

const instancePath = "/latest/meta-data/instance-id"

// reply is what came back.
type reply struct {
	status int
	header http.Header
	body   []byte
	took   time.Duration
}

var (
	at4 = netip.MustParseAddr("169.254.169.254")
	at6 = netip.MustParseAddr("fe80::a9fe:a9fe")
)

// ask makes a request on a connection of its own, from the VM's namespace.
func (w *world) ask(ctx context.Context, q question) (reply, error) {
	if q.patience == 0 {
		q.patience = lab.Patience()
	}
	ctx, cancel := context.WithTimeout(ctx, q.patience)
	defer cancel()
	begin := time.Now()
	host := at4.String()
	if q.family == ipv6 {
		host = "[" + at6.String() + "]"
	}
	if q.path == "" {
		q.path = instancePath
	}
	r, err := http.NewRequestWithContext(ctx, q.method, "http://"+host+q.path, bytes.NewReader(q.body))
	if err != nil {
		return reply{}, err
	}
	for name, values := range q.header {
		r.Header[name] = values
	}
	transport := &http.Transport{
		DisableKeepAlives: true, DisableCompression: true, ResponseHeaderTimeout: q.patience,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return w.dial(ctx, q) },
	}
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, body, time.Since(begin)}, err
}

// dial connects from the VM's namespace.
func (w *world) dial(ctx context.Context, q question) (net.Conn, error) {
	n, err := w.Node(q.vm)
	if err != nil {
		return nil, err
	}
	var conn net.Conn
	err = netns.Named(n.Netns).Do(func() error {
		to, d := netip.AddrPortFrom(at4, 80), net.Dialer{}
		if q.family == ipv6 {
			link := q.link
			if link == "" {
				link = "eth0"
			}
			l, err := net.InterfaceByName(link)
			if err != nil {
				return err
			}
			to = netip.AddrPortFrom(at6.WithZone(strconv.Itoa(l.Index)), 80)
		}
		if q.from != (netip.AddrPort{}) {
			d.LocalAddr = &net.TCPAddr{IP: q.from.Addr().AsSlice(), Port: int(q.from.Port()), Zone: to.Addr().Zone()}
		}
		var err error
		conn, err = d.DialContext(ctx, "tcp", to.String())
		return err
	})
	return conn, err
}

// instance asks who a VM is.
func (w *world) instance(q question) (string, error) {
	r, err := w.ask(w.Context(), q)
	if err == nil && r.status != http.StatusOK {
		err = fmt.Errorf("status %d: %.200s", r.status, r.body)
	}
	return string(r.body), err
}

// instanceOf is the instance that a machine of the scenario is.
func instanceOf(vm string) string { return "inst-" + strings.TrimPrefix(vm, "m-") }

// ownData waits until each VM is told who it is, by both families. It is never told
// that it is another one.
func (w *world) ownData(vms ...string) {
	w.Helper()
	for _, vm := range vms {
		for _, f := range families {
			w.isTold(question{vm: vm, family: f}, instanceOf(vm))
		}
	}
}

// isTold waits until an answer to a question is an instance's id; another one's ends the
// test.
func (w *world) isTold(q question, want string) {
	w.Helper()
	q.patience = soon()
	w.eventually(fmt.Sprintf("%s is told by %s that it is %s", q.vm, q.family, want), func() error {
		got, err := w.instance(q)
		if err == nil && got != want {
			w.Fatalf("%s is told by %s that it is %q, not %s", q.vm, q.family, got, want)
		}
		return err
	})
}

// userDataSize is the largest that a VM may have.
const userDataSize = 64 << 10

// userData is as large as it gets, and no two VMs' are alike. cloud-init takes it
// for a configuration with a long comment.
func userData(vm string) []byte {
	var seed [32]byte
	copy(seed[:], vm)
	random := rand.New(rand.NewChaCha8(seed))
	text := []byte("#cloud-config\nfinal_message: " + vm + "\n# ")
	for len(text) < userDataSize-1 {
		text = append(text, byte('!'+random.IntN(94)))
	}
	return append(text, '\n')
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// slowNova makes Nova think for a while until the test ends.
func (w *world) slowNova(d time.Duration) {
	w.nova.SetFault(nova.Fault{Delay: d})
	w.Cleanup(func() { w.nova.SetFault(nova.Fault{}) })
}
