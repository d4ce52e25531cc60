package status

// Known is a value that is known, for a field that is left out where it is not.
func Known[T any](v T) *T { return &v }

// Version is the answer to "sluicectl version".
type Version struct {
	Version string `json:"version"`
}

// Cleanup is the answer to "sluicectl cleanup".
type Cleanup struct {
	// DryRun tells that nothing was removed.
	DryRun bool `json:"dryRun,omitempty"`
	// Objects are in the order of their removal.
	Objects []CleanupObject `json:"objects"`
}

// CleanupObject is one object that carries Sluice's mark.
type CleanupObject struct {
	// Object names it for people.
	Object  string `json:"object"`
	Removed bool   `json:"removed"`
	// Error is why it could not be removed.
	Error string `json:"error,omitempty"`
}

// Adoption is the answer to "sluicectl adopt".
type Adoption struct {
	// Applied tells that it was done, and not only listed.
	Applied bool `json:"applied,omitempty"`
	// Objects are in the order of their adoption.
	Objects []AdoptedObject `json:"objects"`
	// Foreign are VRFs and namespaces with such names that nothing shows an agent to have
	// made, or that would be of no use, and why.
	Foreign []string `json:"foreign,omitempty"`
}

// AdoptedObject is one object of another agent.
type AdoptedObject struct {
	// Object names it for people.
	Object string `json:"object"`
	// Evidence is what shows that it is that agent's.
	Evidence string `json:"evidence,omitempty"`
	Adopted  bool   `json:"adopted"`
	// Error is why it could not be adopted.
	Error string `json:"error,omitempty"`
}
