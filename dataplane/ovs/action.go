package ovs

import (
	"fmt"
	"strings"

	"github.com/ovn-sluice/sluice/pkg/intent"
)

type actionKind uint8

const (
	actionDrop actionKind = iota
	actionOutput
	actionNormal
)

// action is what a flow does with a frame. The fields after output are done before
// it, in their order.
type action struct {
	kind   actionKind
	output int
	setDst intent.MAC
	// push is the VLAN of a tag that is put on, 0 for none; pop takes one off.
	push int
	pop  bool
}

// vlanPresent is the bit of vlan_vid that OpenFlow 1.2 and later want set.
const vlanPresent = 0x1000

func (a action) format() string {
	switch a.kind {
	case actionNormal:
		return "NORMAL"
	case actionDrop:
		return "drop"
	}
	var words []string
	if !a.setDst.IsZero() {
		words = append(words, "mod_dl_dst:"+a.setDst.String())
	}
	if a.push != 0 {
		words = append(words, "push_vlan:0x8100", fmt.Sprintf("set_field:%d->vlan_vid", a.push|vlanPresent))
	}
	if a.pop {
		words = append(words, "pop_vlan")
	}
	return strings.Join(append(words, fmt.Sprintf("output:%d", a.output)), ",")
}

func parseAction(text string) (action, error) {
	switch text {
	case "drop":
		return action{kind: actionDrop}, nil
	case "NORMAL":
		return action{kind: actionNormal}, nil
	}
	a, pushing := action{kind: actionOutput}, false
	words := strings.Split(text, ",")
	for i, word := range words {
		var err error
		name, value, _ := strings.Cut(word, ":") // a MAC has colons of its own
		value, field, _ := strings.Cut(value, "->")
		switch {
		case (name == "mod_dl_dst" || name == "set_field" && field == "eth_dst") && i == 0:
			a.setDst, err = intent.ParseMAC(value)
			if a.setDst.IsZero() {
				err = errUnknownField
			}
		case name == "push_vlan" && value == "0x8100" && a.push == 0 && !a.pop:
			pushing = true
		case name == "set_field" && field == "vlan_vid" && pushing:
			pushing = false
			a.push, err = number(value, 4094|vlanPresent)
			if a.push &^= vlanPresent; a.push == 0 {
				err = errUnknownField
			}
		case word == "pop_vlan" && !a.pop && a.push == 0 && !pushing:
			a.pop = true
		case name == "output" && i == len(words)-1 && !pushing:
			a.output, err = number(value, 1<<16-1)
		default:
			err = errUnknownField
		}
		if err != nil {
			return a, fmt.Errorf("action %q is not one that Sluice writes", word)
		}
	}
	if !strings.HasPrefix(words[len(words)-1], "output:") {
		return a, fmt.Errorf("action %q is not one that Sluice writes", text)
	}
	return a, nil
}
