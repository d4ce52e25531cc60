package metadata_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ovn-sluice/sluice/test/lab"
)

// red3 is another VM of red's on a chassis.
func red3(chassis string) lab.VM {
	return lab.VM{
		Name: "m-red3", Chassis: chassis, Tenant: "red", Network: "net", Instance: "inst-red3", Project: "project-red",
		Addr4: netip.MustParseAddr("10.30.0.13"), Addr6: netip.MustParseAddr("fd00:30::13"), MAC: "fa:16:3e:00:00:13",
	}
}

// A port that Neutron has not finished yet is told 404, and its data once it is there.
func TestLateData(t *testing.T) {
	for _, chassis := range []string{"m1", "m2"} {
		t.Run(chassis, func(t *testing.T) {
			w := shared(t)
			vm := red3(chassis)
			early := vm
			early.Instance, early.Project = "", ""
			w.add(early)
			for _, f := range families {
				w.eventually("404 by "+string(f), func() error {
					r, err := w.ask(t.Context(), question{vm: vm.Name, family: f, patience: soon()})
					if err == nil && r.status != http.StatusNotFound {
						err = fmt.Errorf("status %d", r.status)
					}
					return err
				})
			}
			w.putInstance(vm)
			w.nb("set", "Logical_Switch_Port", vm.Name, `external_ids:neutron\:device_id=`+vm.Instance, `external_ids:neutron\:project_id=`+vm.Project)
			w.ownData(vm.Name)
		})
	}
}

// A port that goes to another VM is that one's from then on.
func TestPortChangesHands(t *testing.T) {
	w := shared(t)
	vm := red3("m1")
	w.add(vm)
	w.ownData(vm.Name)
	next := vm
	next.Instance = "inst-red4"
	w.putInstance(next)
	w.nb("set", "Logical_Switch_Port", vm.Name, `external_ids:neutron\:device_id=`+next.Instance)
	for _, f := range families {
		w.eventually("it is inst-red4 by "+string(f), func() error {
			got, err := w.instance(question{vm: vm.Name, family: f, patience: soon()})
			if err == nil && got != next.Instance {
				err = fmt.Errorf("it is told %q", got)
			}
			return err
		})
	}
}

// A tap that was made again, on this chassis or on another one, is the port's.
func TestTapIsMadeAgain(t *testing.T) {
	w := shared(t)
	vm := red3("m1")
	w.add(vm)
	w.ownData(vm.Name)
	for _, chassis := range []string{"m1", "m2", "m1"} {
		if err := w.MoveVM(t.Context(), vm.Name, chassis); err != nil {
			t.Fatal(err)
		}
		w.ownData(vm.Name)
	}
}

// A VM goes while it has connections and a request under way, and another one comes
// with its addresses: it is told its own data, and the proxy keeps nothing of the first.
func TestVMGoesWhileItAsks(t *testing.T) {
	for _, chassis := range []string{"m1", "m2"} {
		t.Run(chassis, func(t *testing.T) {
			w := shared(t)
			vm := red3(chassis)
			w.add(vm)
			w.ownData(vm.Name)
			conn, err := w.dial(t.Context(), question{vm: vm.Name, family: ipv4})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			got, err := askOn(conn)
			if err != nil || got != vm.Instance {
				t.Fatalf("on the connection that stays: %q, %v", got, err)
			}
			w.slowNova(2 * time.Second)
			asked := make(chan struct{})
			go func() {
				defer close(asked)
				_, _ = w.ask(background, question{vm: vm.Name, family: ipv4, patience: soon()})
			}()
			time.Sleep(300 * time.Millisecond)
			if err := w.DelVM(t.Context(), vm.Name); err != nil {
				t.Fatal(err)
			}
			heir := vm
			heir.Name, heir.Instance = "m-red5", "inst-red5"
			w.add(heir)
			w.ownData(heir.Name)
			<-asked
			if chassis == "m1" {
				w.eventually("the connections of the VM that went are closed", func() error {
					if got := w.exec("m1", "ip", "netns", "exec", "sluice-metadata", "ss", "-Htn", "state", "established"); strings.TrimSpace(got) != "" {
						return fmt.Errorf("there are: %s", got)
					}
					return nil
				})
			}
		})
	}
}

// askOn asks on a connection that stays open.
func askOn(conn net.Conn) (string, error) {
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\n", instancePath); err != nil {
		return "", err
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	var body [256]byte
	n, _ := resp.Body.Read(body[:])
	return string(body[:n]), nil
}

// Many VMs come and go on one chassis, and each is told its own data.
func TestVMsComeAndGo(t *testing.T) {
	w := shared(t)
	for i := range 5 {
		vm := red3("m1")
		vm.Name, vm.Instance = fmt.Sprintf("m-come%d", i), fmt.Sprintf("inst-come%d", i)
		w.add(vm)
		w.ownData(vm.Name)
		if err := w.DelVM(t.Context(), vm.Name); err != nil {
			t.Fatal(err)
		}
	}
}
