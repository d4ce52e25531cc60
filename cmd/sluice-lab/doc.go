// Command sluice-lab brings up small OVN clouds in network namespaces, for the
// demo and for trying things by hand.
//
// It owns its command line alone; the clouds are package lab's, the demo is
// package demo's, both under test. It changes nothing of the machine outside the
// namespaces and the directory of its lab, and "down" takes both away.
package main
