// Package bareroot runs both commands of the README as a newcomer does: in a root directory of Debian
// (tools/bareroot.sh) that has what the README asks for, Go, a package mirror, empty caches, and a clone of
// the working tree. make demo runs whole, make test as far as packages, build, lint and the quick tests.
//
// A package that a script calls and tools/deps.sh does not install fails here. The root is a namespace of
// mounts and processes of its own, in memory, and leaves nothing. It uses the machine's network, for the
// mirrors. Needs root.
package bareroot
