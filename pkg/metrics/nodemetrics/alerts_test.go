package nodemetrics

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/ovn-sluice/sluice/pkg/drop"
	"github.com/ovn-sluice/sluice/pkg/reason"
)

// alert is one alert of deploy/prometheus/sluice.rules.yaml.
type alert struct {
	Alert               string
	Expr                string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) (out []alert) {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/prometheus/sluice.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert != "" {
				out = append(out, r)
			}
		}
	}
	if len(out) == 0 {
		t.Fatal("no alerts")
	}
	return out
}

// Each alert has a severity, a test in which it fires, and a runbook: a heading of docs/alerts.md that says the severity.
func TestAlertsHaveRunbooks(t *testing.T) {
	const base = "https://github.com/ovn-sluice/sluice/blob/main/docs/alerts.md#"
	page, err := os.ReadFile("../../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../../../deploy/prometheus/sluice.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range alerts(t) {
		names = append(names, a.Alert)
		anchor, ok := strings.CutPrefix(a.Annotations["runbook_url"], base)
		if !ok || anchor != strings.ToLower(a.Alert) {
			t.Errorf("%s: runbook_url %q is none of %s%s", a.Alert, a.Annotations["runbook_url"], base, strings.ToLower(a.Alert))
		}
		if !strings.Contains(string(page), "\n## "+a.Alert+"\n\n"+a.Labels["severity"]) {
			t.Errorf("docs/alerts.md has no section %s that begins with its severity, %q", a.Alert, a.Labels["severity"])
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("%s: severity %q, annotations %v", a.Alert, a.Labels["severity"], a.Annotations)
		}
		if fires := regexp.MustCompile(`alertname="` + a.Alert + `"|alertname: ` + a.Alert + `\n`); !fires.Match(tests) {
			t.Errorf("%s: no test of its own in sluice.test.yaml", a.Alert)
		}
	}
	for _, section := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(page), -1) {
		if !slices.Contains(names, section[1]) {
			t.Errorf("docs/alerts.md has a section %s, and there is no such alert", section[1])
		}
	}
}

// SluiceBug is of the drop reasons that their page calls a bug, and of no others.
func TestBugsAreAlerts(t *testing.T) {
	var bugs []string
	for _, r := range drop.All() {
		if strings.Contains(r.Act(), "bug") {
			bugs = append(bugs, r.String())
		}
	}
	for _, a := range alerts(t) {
		if want := `{reason=~"` + strings.Join(bugs, "|") + `"}`; a.Alert == "SluiceBug" && !strings.Contains(a.Expr, want) {
			t.Errorf("%s is not of %s", a.Expr, want)
		}
	}
}

// SluiceTenantsCut is of the reasons by which tenants are cut, SluiceObjectRefused of all others.
// Each is an error of some kind of object.
func TestCuttingReasonsAreCritical(t *testing.T) {
	words := strings.Join(reason.Cutting(), "|")
	want := map[string]string{"SluiceTenantsCut": `state="error", reason=~"` + words + `"`, "SluiceObjectRefused": `state="error", reason!~"` + words + `"`}
	for _, a := range alerts(t) {
		if !strings.Contains(a.Expr, want[a.Alert]) {
			t.Errorf("%s: %s is not of %s", a.Alert, a.Expr, want[a.Alert])
		}
	}
	for _, word := range reason.Cutting() {
		if !slices.ContainsFunc(reason.Objects(), func(e reason.Entry) bool { return e.Word == word && e.State == "error" }) {
			t.Errorf("%s is no reason of an error", word)
		}
	}
}

// Each job of docs/watch.md gives all targets of a node one instance, by which SluiceDown
// knows that the node was drained: of a host its name or address, without the port.
func TestScrapedJobsNameTheNode(t *testing.T) {
	page, err := os.ReadFile("../../../docs/watch.md")
	if err != nil {
		t.Fatal(err)
	}
	type rule struct {
		Source []string `json:"source_labels"`
		Target string   `json:"target_label"`
		Regex  string   `json:"regex"`
	}
	jobs, hosts := 0, map[string][]string{}
	for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(string(page), -1) {
		if !strings.Contains(block[1], "job_name:") {
			continue
		}
		text := block[1]
		if !strings.Contains(text, "scrape_configs:") { // it goes on with the list of the one before
			text = "scrape_configs:\n" + text
		}
		var file struct {
			Jobs []struct {
				Name    string                       `json:"job_name"`
				Static  []struct{ Targets []string } `json:"static_configs"`
				Relabel []rule                       `json:"relabel_configs"`
			} `json:"scrape_configs"`
		}
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			t.Fatal(err)
		}
		for _, j := range file.Jobs {
			jobs++
			i := slices.IndexFunc(j.Relabel, func(r rule) bool { return r.Target == "instance" })
			if i < 0 {
				t.Errorf("job %s sets no instance:\n%s", j.Name, text)
				continue
			}
			for _, s := range j.Static {
				for _, target := range append(s.Targets, "192.0.2.7:9476", "[2001:db8::7]:9477") {
					if m := regexp.MustCompile("^(?:" + j.Relabel[i].Regex + ")$").FindStringSubmatch(target); len(m) < 2 || !strings.HasPrefix(target, m[1]+":947") {
						t.Errorf("job %s: the instance of %s is %v", j.Name, target, m)
					} else {
						hosts[j.Name] = append(hosts[j.Name], m[1])
					}
				}
			}
		}
	}
	if jobs != 4 || len(hosts["sluice"]) == 0 || !slices.Equal(hosts["sluice"], hosts["sluice-metadata"]) {
		t.Errorf("%d jobs; instances of hosts: %v", jobs, hosts)
	}
}
