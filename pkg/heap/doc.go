// Package heap sets the pace of the garbage collector, and gives memory back to the system after bursts of
// work.
package heap
