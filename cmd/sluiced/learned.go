package main

import (
	"github.com/ovn-sluice/sluice/pkg/intent"
	"github.com/ovn-sluice/sluice/pkg/tables"
)

// learnedReports is the source of what is reported of routers that get no routes.
const learnedReports = "learned"

// tellLearned reports the routers whose routing table cannot be used.
func (n *node) tellLearned() { n.d.reg.Reporter(learnedReports).Replace(n.learned.Objects()) }

// relistLearned reads back what is given to OVN, if anything is. It is called inside
// Pipeline.Update.
func (n *node) relistLearned() {
	any := false
	tables.Of(n.tables, intent.LearnedRoutes).EachLocked(func(intent.LearnedKey, intent.LearnedRoute) { any = true })
	if any {
		tables.Of(n.tables, intent.LearnedRoutes).Relist()
	}
}
