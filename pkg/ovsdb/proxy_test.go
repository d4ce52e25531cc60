package ovsdb_test

import (
	"encoding/json"
	"testing"

	"github.com/ovn-sluice/sluice/pkg/ovsdb/ovsdbtest"
)

// newLiar is a proxy that can lie. answer, if set, sees what clients send; what it returns goes back to
// the client, and the message does not reach the server. alter, if set, sees what the server sends and
// says what goes on.
func newLiar(t testing.TB, endpoint string, answer, alter func(json.RawMessage) []byte) *ovsdbtest.Proxy {
	t.Helper()
	p := ovsdbtest.NewProxy(t, endpoint)
	p.Watch(func(m *ovsdbtest.Message) ovsdbtest.Verdict {
		switch {
		case m.ToServer && answer != nil:
			if reply := answer(m.Raw); reply != nil {
				m.Raw = reply
				return ovsdbtest.Answer
			}
		case !m.ToServer && alter != nil:
			m.Raw = alter(m.Raw)
		}
		return ovsdbtest.Pass
	})
	return p
}
