// Package demo is the tour that "make demo" gives: it brings the evpn scenario
// up, starts sluiced on every chassis, and shows the main job on real traffic,
// in plain words. Every claim that it prints was checked a moment before; one
// that does not hold ends the tour with an error. The lab stays up afterwards.
package demo
