// Package control measures how fast a node takes part in the fabric: a start of sluiced over
// pins with the same programs, over pins with other programs, and without pins, each to the BGP
// session and to all routes; what an idle gateway takes of a processor; and the path of a change
// in Southbound, a bound port and a new VRF, to the UPDATE at the neighbour.
//
// The lab has one sluiced, on the gateway chassis a1. Its neighbour is a BGP speaker of this
// package on a2, without graceful restart: what it hears it notes when it is read from the
// socket, and it forgets all routes with the session. ovn-northd is paused, since it would
// compute the whole cloud again for each change, on the processors of the daemon.
//
// Tests of test/evpn assert what is lost meanwhile and what is there in the end, without a time:
//
//	row                              test
//	restart, same programs           TestKillsLoseNothing, TestRestartWithoutGracefulRestart
//	restart, other programs          TestChangedProgramsAreReplacedAfterBGP
//	cold start                       TestColdStart
//	idle gateway                     TestIdle
//	port bound in Southbound         TestPortIsBound
//	annotation of a new VRF          TestVNIChange
package control
