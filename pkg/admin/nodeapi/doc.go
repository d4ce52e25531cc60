// Package nodeapi is what sluiced and the metadata proxy answer on their sockets: the endpoints
// with the types of their requests. Those of their answers are in pkg/status.
// docs/reference/admin-api.md is made of both.
package nodeapi

//go:generate go run ../../../tools/docgen api . ../../status ../../../docs/reference/admin-api.md
