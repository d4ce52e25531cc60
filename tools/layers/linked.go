package main

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
)

// unlinked are the packages that programs may not have in them, however they would get there: what only the
// controller needs stays out of the node's programs, and the other way round.
var unlinked = []struct {
	programs []string
	packages []string
}{
	{
		[]string{"cmd/sluiced", "cmd/sluicectl"},
		[]string{"controlplane/octavia", "controlplane/openstack", "controlplane/neutron", "controlplane/identity", "controlplane/rest", "pkg/metrics/controllermetrics"},
	},
	{
		[]string{"cmd/sluice-controller"},
		[]string{"dataplane", "pkg/config", "pkg/tables", "controlplane/bgp", "controlplane/evpn", "controlplane/ovn"},
	},
}

// checkLinked finds what programs have in them that they may not.
func checkLinked(root string, r *report) error {
	for _, rule := range unlinked {
		for _, program := range rule.programs {
			list := exec.Command("go", "list", "-deps", "./"+program)
			list.Dir = root
			out, err := list.Output()
			if err != nil {
				return fmt.Errorf("the packages of %s: %w", program, err)
			}
			r.problems = append(r.problems, linkProblems(program, strings.Fields(string(out)), rule.packages)...)
		}
	}
	return nil
}

// linkProblems are the packages of a program, by import path, that are below one that it may not have.
func linkProblems(program string, linked, packages []string) (out []string) {
	for _, path := range linked {
		inner, ours := strings.CutPrefix(path, module)
		if ours && slices.ContainsFunc(packages, func(p string) bool { return inner == p || strings.HasPrefix(inner, p+"/") }) {
			out = append(out, fmt.Sprintf("%s has %s in it: other programs' packages stay out of it", program, inner))
		}
	}
	return out
}
