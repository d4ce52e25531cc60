package drop

import "fmt"

// Reason is why a packet was dropped. 0 is no reason.
type Reason uint32

type info struct{ name, explain, act string }

// Count is the number of rows of the counter map: every reason, and row 0.
const Count = len(reasons)

// All lists the reasons in the order of their numbers.
func All() []Reason {
	out := make([]Reason, 0, Count-1)
	for i := 1; i < Count; i++ {
		out = append(out, Reason(i))
	}
	return out
}

func (r Reason) known() bool { return r > 0 && int(r) < Count }

// String is the reason's name: lower-case words joined by underscores. A number
// that this build does not know is shown as such.
func (r Reason) String() string {
	if !r.known() {
		return fmt.Sprintf("reason_%d", uint32(r))
	}
	return reasons[r].name
}

// MarshalText writes the name.
func (r Reason) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// Explain says in a sentence what the program saw.
func (r Reason) Explain() string {
	if !r.known() {
		return "A reason of a newer version of the programs."
	}
	return reasons[r].explain
}

// Act says what an operator does about it.
func (r Reason) Act() string {
	if !r.known() {
		return "Update sluicectl."
	}
	return reasons[r].act
}
