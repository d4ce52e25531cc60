package reason

// Entry explains a reason.
type Entry struct {
	// Word is the reason itself.
	Word string
	// Of are the kinds of object, or the components, that it is given for.
	Of []string
	// State is that of the object (error, warning, withheld, pending), or of the
	// component (ready, not ready).
	State string
	// Means says what sluiced found, Act what to do about it.
	Means, Act string
}

// The states of entries.
const (
	broken   = "error"
	warning  = "warning"
	withheld = "withheld"
	fine     = "ok"
	pending  = "pending"
	ready    = "ready"
	notReady = "not ready"
	rejected = "rejected"
)

// Cutting lists the reasons of errors by which tenants that were served are cut: their packets
// are lost now, or come to another node. An error of any other reason leaves out what is new or
// named wrongly, and what was forwarded is. The alert SluiceTenantsCut is of these.
func Cutting() []string {
	return []string{Missing, NoBridgeMapping, NoDevice, NoVTEP, SameVTEP, SameRouterID, CutOff, RouteUnreachable, PathDiffers}
}

const nothing = "Nothing."
