// Package settings has the configuration file of sluiced as each package takes it, and who the node is.
package settings
