package loadbalancer

import "testing"

// A variable of IPv6 has no brackets: OVN puts it into the matches of its flows (ip6.dst == ^vip)
// as it is. Variables of backends, which it puts into ct_lb_mark(backends=^backends), have them.
func TestTemplateOfIPv6(t *testing.T) {
	row := Row{VIPs: map[string]string{"^V:^P": "^B", "^W:80": "[fd00::7]:8080"}, Options: map[string]string{"template": "true", "address-family": "ipv6"}}
	variables := map[string]string{"V": "fd00::1", "P": "80", "W": "fd00::2", "B": "[fd00::7]:8080,[fd00::8]:8080"}
	const want = "[fd00::1]:80/tcp [fd00::7]:8080 [fd00::8]:8080; [fd00::2]:80/tcp [fd00::7]:8080"
	if got := say(Parse(row, variables, 0)); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}
