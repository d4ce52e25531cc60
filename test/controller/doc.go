// Package controller tests two replicas of sluice-controller, as processes at one real Northbound
// database, while they are killed, while their connections end, and while a third writer changes the
// same rows. Each replica has a proxy to the database, so that a fault comes at a place that the test
// names, not at some time.
//
// What the rows have to be after each call says a model, which shares no code with the controller.
package controller
