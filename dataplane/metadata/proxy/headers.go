package proxy

import (
	"net/http"
	"strings"
)

// Headers of Nova's protocol.
const (
	headerForwardedFor = "X-Forwarded-For"
	headerInstance     = "X-Instance-ID"
	headerProject      = "X-Tenant-ID"
	headerSignature    = "X-Instance-ID-Signature"
)

// claims are the beginnings of headers by which a guest could say who it is, or where
// its request came from. Nova's own and those of its other proxies (Neutron's and NSX's,
// X-Metadata-Provider) are among them.
var claims = []string{"forwarded", "x-forwarded-", "x-real-ip", "x-instance-id", "x-tenant-id", "x-project-id", "x-ovn-", "x-neutron-", "x-metadata-provider"}

// disown takes what a guest may not say out of a header. A WSGI server makes a dash of
// a header's underscore (PEP 3333: HTTP_ variables), so the two are the same here.
func disown(h http.Header) {
	for name := range h {
		plain := strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		for _, c := range claims {
			if strings.HasPrefix(plain, c) {
				delete(h, name)
				break
			}
		}
	}
}
