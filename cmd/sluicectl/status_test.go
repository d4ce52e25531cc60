package main

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/pkg/status"
)

// The head of the status says that the node is being drained, or is drained, and nothing of it among the problems.
func TestDrainInTheHead(t *testing.T) {
	for reason, want := range map[string]string{
		"serving": ": ready\n", "graceful-shutdown": ": ready, being drained (graceful-shutdown)\n", "withdrawn": ": ready, being drained (withdrawn)\n",
		"drained": ": ready, drained since 2h; 'sluicectl undrain' puts it back\n",
	} {
		var b bytes.Buffer
		c := status.Condition{Name: "drain", Ready: true, Reason: reason, Since: time.Now().Add(-2 * time.Hour)}
		if err := writeStatus(&b, status.Status{Ready: true, Identity: status.Identity{Chassis: "a1"}, Conditions: []status.Condition{c}}); err != nil {
			t.Fatal(err)
		}
		if head, _, _ := strings.Cut(b.String(), "\n"); !strings.HasSuffix(head+"\n", want) || !strings.Contains(b.String(), "no problems") {
			t.Errorf("%s: %s", reason, &b)
		}
	}
}

// A script takes a dead daemon for one, also where its pinned maps can be read.
func TestReadinessIsTheExitCode(t *testing.T) {
	for _, tt := range []struct {
		s    status.Status
		want error
	}{{status.Status{Ready: true}, nil}, {status.Status{}, errAnswerNo}, {status.Status{Offline: true}, errOffline}} {
		if got := readiness(tt.s); !errors.Is(got, tt.want) || tt.want == nil && got != nil {
			t.Errorf("%+v: %v, want %v", tt.s, got, tt.want)
		}
	}
}
