// Package wanted has rows of tables that somebody wants, and differences between two states of
// them: what the control plane's translations compute, and the node's tables take.
package wanted
