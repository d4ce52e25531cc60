// Package drop names the reasons for which Sluice's programs drop a packet.
//
// The list lives in reasons.yaml and nowhere else: the C header, the constants
// here, the metric labels and docs/reference/drop-reasons.md are made from it by
// `make generate`, which builds the programs with the new header, too.
// A reason's number is a row of a pinned map, so numbers never change.
package drop

//go:generate go run ../../tools/dropreasons -in reasons.yaml -c ../../bpf/lib/drop_reasons.h -go reasons.go -md ../../docs/reference/drop-reasons.md
