package nodeapi

import (
	"time"

	"github.com/ovn-sluice/sluice/pkg/admin"
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

// VRFSelector selects one VRF; VNI 0 selects all.
type VRFSelector struct {
	VNI intent.VNI `json:"vni,omitempty"`
}

// DrainRequest asks for a drain.
type DrainRequest struct {
	// WithdrawAfter is the time from the beginning of the drain to the withdrawal of
	// the routes, in nanoseconds.
	WithdrawAfter time.Duration `json:"withdrawAfter"`
}

// WeighRequest asks for another weight of a backend.
type WeighRequest struct {
	// LoadBalancer is a row's name, or _uuid.
	LoadBalancer string `json:"loadBalancer"`
	// Backend is an address with or without a port, as in the row.
	Backend string `json:"backend"`
	// Weight is 0 to 256; null: the weight is removed, and counts as 1.
	Weight *uint16 `json:"weight"`
}

// Weighed is the result of a WeighRequest.
type Weighed struct {
	// ByOVN are the load balancer's VIPs and the VMs that OVN balances on this node, each with
	// its reason. OVN ignores weights.
	ByOVN []string `json:"byOVN"`
}

// Text is an answer for people.
type Text struct {
	Text string `json:"text"`
}

// Program is whose endpoints these are, for errors.
const Program = "sluiced"

// The endpoints of sluiced.
var (
	// GetStatus is "sluicectl status".
	GetStatus = admin.NewEndpoint[admin.Nothing, status.Status]("/v1/status")
	// GetObjects is every object with its state.
	GetObjects = admin.NewEndpoint[admin.Nothing, []status.Object]("/v1/objects")
	// GetConfig is the effective configuration as YAML.
	GetConfig = admin.NewEndpoint[admin.Nothing, Text]("/v1/config")
	// ListVRFs is "sluicectl vrf list".
	ListVRFs = admin.NewEndpoint[admin.Nothing, []status.VRF]("/v1/vrfs")
	// GetVRF is "sluicectl vrf show", with all lists filled.
	GetVRF = admin.NewEndpoint[VRFSelector, status.VRF]("/v1/vrf")
	// ListVIPs is "sluicectl lb list".
	ListVIPs = admin.NewEndpoint[VRFSelector, []status.VIP]("/v1/vips")
	// ListBackends is "sluicectl lb backends" and "lb show": ListVIPs with the slower fields.
	ListBackends = admin.NewEndpoint[VRFSelector, []status.VIP]("/v1/vips/backends")
	// ExplainVIP is "sluicectl lb explain".
	ExplainVIP = admin.NewEndpoint[status.VIPQuery, status.VIPExplanation]("/v1/vips/explain")
	// Weigh is "sluicectl lb drain" and "lb undrain": it writes options:sluice-weights in the
	// Northbound database.
	Weigh = admin.NewChange[WeighRequest, Weighed]("/v1/vips/weigh")
	// ListSessions is "sluicectl lb sessions", with at most 10000 sessions.
	ListSessions = admin.NewEndpoint[VRFSelector, status.Sessions]("/v1/vips/sessions")
	// ListVMs is "sluicectl lb vms".
	ListVMs = admin.NewEndpoint[admin.Nothing, []status.VM]("/v1/vips/vms")
	// ListRoutes is "sluicectl route list".
	ListRoutes = admin.NewEndpoint[VRFSelector, []status.Route]("/v1/routes")
	// GetBGP is "sluicectl bgp neighbors".
	GetBGP = admin.NewEndpoint[admin.Nothing, status.BGP]("/v1/bgp")
	// ListBGPRoutes is "sluicectl bgp routes".
	ListBGPRoutes = admin.NewEndpoint[VRFSelector, []status.BGPRoute]("/v1/bgp/routes")
	// GetUnderlay is "sluicectl underlay".
	GetUnderlay = admin.NewEndpoint[admin.Nothing, status.Underlay]("/v1/underlay")
	// GetDrops is "sluicectl drops".
	GetDrops = admin.NewEndpoint[admin.Nothing, status.Drops]("/v1/drops")
	// FollowDrops is the stream of "sluicectl drops --follow".
	FollowDrops = admin.NewEndpoint[admin.Nothing, status.Drop]("/v1/drops/follow")
	// GetDiff is "sluicectl diff".
	GetDiff = admin.NewEndpoint[admin.Nothing, status.Diff]("/v1/diff")
	// GetDrain is the progress of a drain.
	GetDrain = admin.NewEndpoint[admin.Nothing, status.Drain]("/v1/drain/status")
	// Drain is "sluicectl drain".
	Drain = admin.NewChange[DrainRequest, status.Drain]("/v1/drain/begin")
	// Undrain is "sluicectl undrain".
	Undrain = admin.NewChange[admin.Nothing, status.Drain]("/v1/drain/end")
	// GetMetadataProxy is the state of the metadata proxy. The proxy answers on its own socket,
	// metadata.socket.
	GetMetadataProxy = admin.NewEndpoint[admin.Nothing, status.MetadataProxy]("/v1/metadata/proxy")
	// ListMetadataRequests is "sluicectl metadata requests", the oldest first. The metadata
	// proxy's socket answers it, too.
	ListMetadataRequests = admin.NewEndpoint[admin.Nothing, []status.MetadataRequest]("/v1/metadata/requests")
	// Explain is "sluicectl explain".
	Explain = admin.NewEndpoint[status.Query, status.Explanation]("/v1/explain")
	// GetMetadata is "sluicectl metadata ports".
	GetMetadata = admin.NewEndpoint[admin.Nothing, status.Metadata]("/v1/metadata")
	// ExplainMetadata is "sluicectl metadata explain".
	ExplainMetadata = admin.NewEndpoint[status.MetadataQuery, status.MetadataExplanation]("/v1/metadata/explain")
	// Trace is "sluicectl trace".
	Trace = admin.NewEndpoint[status.TraceRequest, status.Trace]("/v1/trace")
)
