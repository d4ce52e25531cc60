// Sluice-controller answers Octavia's API with OVN's Northbound database as its only store.
// Several may run: each answers every call.
package main
