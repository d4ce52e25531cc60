// Package beat is the one clock for what has to look: facts that make no event.
//
// A Ticker is a time.Ticker whose ticks come together with those of every other Ticker of the
// process: each is at a multiple of its period, counted from the start of the process. A process that looks at
// ten things once a second wakes up once a second, and not ten times. Nodes of a
// cloud start at different moments, so they do not all ask a server at once.
//
// The package owns no goroutine. A Ticker is for periods of a tenth of a second and more; what
// has an event waits for the event.
package beat
