// Package config is sluice-controller's configuration file.
//
//go:generate go run ../../../tools/docgen config sluice-controller ../../../docs/reference/controller-config.md
package config
