// Package evpn holds the end-to-end tests of the EVPN data plane: real OVN, Open
// vSwitch, FRR and sluiced in a lab, judged by the packets that VMs see, the
// routes at the reflector and the state that is left. Nothing is judged by how
// long it took; times are printed.
package evpn
