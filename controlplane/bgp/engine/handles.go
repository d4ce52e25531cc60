package engine

import (
	"net/netip"
	"sync"
)

// Handles are the neighbours by the addresses that the BGP server has for them (package
// wire). They have no lock that others hold: the server's log asks for them.
type Handles struct{ byHandle sync.Map } // netip.Addr by string

// Add notes a neighbour.
func (h *Handles) Add(handle, neighbor netip.Addr) { h.byHandle.Store(handle.String(), neighbor) }

// Name is the address of the neighbour with a handle. A text that is no handle is returned unchanged.
func (h *Handles) Name(handle string) string {
	if a, ok := h.byHandle.Load(handle); ok {
		return a.(netip.Addr).String()
	}
	return handle
}

// Forget drops the handles of neighbours that are gone.
func (h *Handles) Forget(gone func(netip.Addr) bool) {
	h.byHandle.Range(func(k, a any) bool {
		if gone(a.(netip.Addr)) {
			h.byHandle.Delete(k)
		}
		return true
	})
}
