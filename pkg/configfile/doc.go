// Package configfile reads a program's configuration file, in YAML, into a struct.
//
// The struct is the file's shape: every field has a yaml tag, its key. Fields are
// structs, maps, slices, strings, booleans, unsigned numbers of up to 32 bits, and
// types that implement encoding.TextUnmarshaler. The package knows no program's file.
//
// Promises:
//   - An unknown key, a key given twice and a bad value are errors. Each names
//     the file, the line, the column, the key and the fix, and all of them are
//     reported at once.
//   - The program's own rules are checked on what could be read, too; what they find
//     is reported in the same form.
//   - A Secret prints as "[redacted]", whatever prints it.
//
// It never opens a socket or changes the system.
package configfile
