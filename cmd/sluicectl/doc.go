// Command sluicectl shows what sluiced does and why, and cleans up after it.
//
// It asks sluiced over its local socket, or, where sluiced does not run, reads the
// pinned maps. It owns the words and tables that people see, and JSON beside
// them; what it shows is computed by sluiced. Only "cleanup" changes anything.
package main
