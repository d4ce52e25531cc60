// Package measure is what a measurement gives: numbers with their goals, and what many
// samples come down to. It is pure.
package measure
