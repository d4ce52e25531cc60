// Package identity tells who makes a request of the controller's APIs, and for which project.
package identity
