// Package output writes the answers of Sluice's programs: as a table for people,
// as JSON or YAML for programs.
package output
