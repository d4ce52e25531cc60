package admin

import (
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/status"
)

type selector struct{ VNI intent.VNI }

// The endpoints of the tests.
var (
	askStatus     = NewEndpoint[Nothing, status.Status]("/v1/status")
	askExplain    = NewEndpoint[status.Query, status.Explanation]("/v1/explain")
	askVRF        = NewEndpoint[selector, status.VRF]("/v1/vrf")
	followDrops   = NewEndpoint[Nothing, status.Drop]("/v1/drops/follow")
	changeDrain   = NewChange[Nothing, status.Drain]("/v1/drain/begin")
	changeUndrain = NewChange[Nothing, status.Drain]("/v1/drain/end")
	changeWeigh   = NewChange[selector, Nothing]("/v1/vips/weigh")
)
