package namespace

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/netns"
)

// The names by default.
const (
	DefaultProxy  = "sluice-metadata"
	DefaultPrefix = "ovnmeta-"
)

// Names is what namespaces are called. Nodes that are namespaces of one host share its
// directory, so each needs names of its own. The zero value has the defaults.
type Names struct {
	// Dir is where the files of namespaces are: netns.RunDir.
	Dir string
	// Proxy is the proxy's: DefaultProxy.
	Proxy string
	// Prefix is what a network's begins with: DefaultPrefix.
	Prefix string
}

func (n Names) dir() string { return cmp.Or(n.Dir, netns.RunDir) }

func (n Names) prefix() string { return cmp.Or(n.Prefix, DefaultPrefix) }

// proxyNames are how many names the proxy's namespace may have.
const proxyNames = 9

// ProxyPath is the file of the proxy's namespace: the one that is Sluice's, else the first name that
// is vacant. Where something else has the name, be it a directory, a link, a file or a namespace of
// somebody, a number is behind it: that is not Sluice's to remove, and VMs would have no answer until
// somebody does.
func (n Names) ProxyPath() string {
	ours, vacant := n.proxy()
	return cmp.Or(ours, vacant, n.proxyPath(1))
}

// ProxyServed is ProxyPath for the proxy itself, which waits by the first name until the namespace is made.
func (n Names) ProxyServed() string {
	ours, _ := n.proxy()
	return cmp.Or(ours, n.proxyPath(1))
}

// proxyPath is the file by one of the names.
func (n Names) proxyPath(number int) string {
	path := filepath.Join(n.dir(), cmp.Or(n.Proxy, DefaultProxy))
	if number == 1 {
		return path
	}
	return fmt.Sprintf("%s-%d", path, number)
}

// proxy looks for the namespace that is Sluice's, and for the first name that nobody has.
func (n Names) proxy() (ours, vacant string) {
	for i := range proxyNames {
		path := n.proxyPath(i + 1)
		there, mine, err := space{path, mark}.ours()
		if mine || there && err != nil { // whoever uses the namespace is told
			return path, vacant
		}
		if vacant == "" && netns.Vacant(path) {
			vacant = path
		}
	}
	return "", vacant
}

// Path is the file of a network's namespace.
func (n Names) Path(network string) string { return filepath.Join(n.dir(), n.prefix()+network) }

// Name is that of a network's namespace, as ip-netns(8) has it. It is an error that no
// namespace can have it.
func (n Names) Name(network string) (string, error) { return n.prefix() + network, nameable(network) }

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// Devices are the ends of a network's pair: the one that is the port, and the one in the
// namespace. The names have the first ten characters of the network's UUID; those of a
// network with another name, which may begin as others do, ten of its hash.
func Devices(network string) (outside, inside string) {
	short := network
	if !uuid.MatchString(network) {
		sum := sha256.Sum256([]byte(network))
		short = hex.EncodeToString(sum[:])
	}
	return "tap" + short[:10] + "0", "tap" + short[:10] + "1"
}

// address is what the outer end of a network's pair is created with.
func address(network string) intent.MAC {
	sum := sha256.Sum256([]byte(network))
	return intent.MAC{0xfe, 0x73, 0x6e, sum[0], sum[1], sum[2]}
}

// mark is the alternative name of what is the proxy's.
const mark = "sluice:metadata"

func markOf(network string) string { return mark + ":" + network }

// networkOf is the opposite of markOf.
func networkOf(marks []string) (string, bool) {
	for _, m := range marks {
		if network, ok := strings.CutPrefix(m, mark+":"); ok && network != "" {
			return network, true
		}
	}
	return "", false
}

// maxNetwork keeps marks within ALTIFNAMSIZ.
const maxNetwork = 100

var errName = errors.New("no namespace can have its name")

// nameable tells whether a network's name can be in the name of a namespace.
func nameable(network string) error {
	bad := func(r rune) bool { return r <= ' ' || r == '/' || r == 0x7f }
	if network == "" || len(network) > maxNetwork || strings.ContainsFunc(network, bad) {
		return fmt.Errorf("network %q: %w", network, errName)
	}
	return nil
}
