package gateway

// learnedReports is the source of what is reported of routers that get no routes.
const learnedReports = "learned"

// tellLearned reports the routers whose routing table cannot be used.
func (g *Gateway) tellLearned() { g.reg.Reporter(learnedReports).Replace(g.learned.Objects()) }
