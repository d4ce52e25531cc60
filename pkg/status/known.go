package status

// Known is a value that is known, for a field that is left out where it is not.
func Known[T any](v T) *T { return &v }

// Version is the answer to "sluicectl version".
type Version struct {
	Version string `json:"version"`
}

// Cleanup is the answer to "sluicectl cleanup".
type Cleanup struct {
	// DryRun tells that the objects are listed only.
	DryRun bool `json:"dryRun,omitempty"`
	// Objects are in the order of their removal.
	Objects []CleanupObject `json:"objects"`
}

// CleanupObject is one object that carries Sluice's mark.
type CleanupObject struct {
	// Object is the object's name for people.
	Object  string `json:"object"`
	Removed bool   `json:"removed"`
	// Error is why the removal failed.
	Error string `json:"error,omitempty"`
}

// Adoption is the answer to "sluicectl adopt".
type Adoption struct {
	// Applied tells that the adoption was carried out; without it the objects are listed only.
	Applied bool `json:"applied,omitempty"`
	// Objects are in the order of their adoption.
	Objects []AdoptedObject `json:"objects"`
	// Foreign are VRFs and namespaces with an agent's names that lack evidence of the agent, or
	// that would be useless, each with the reason.
	Foreign []string `json:"foreign,omitempty"`
}

// AdoptedObject is one object of another agent.
type AdoptedObject struct {
	// Object is the object's name for people.
	Object string `json:"object"`
	// Evidence shows that the object is that agent's.
	Evidence string `json:"evidence,omitempty"`
	Adopted  bool   `json:"adopted"`
	// Error is why the adoption failed.
	Error string `json:"error,omitempty"`
}
