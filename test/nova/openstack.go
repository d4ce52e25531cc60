package nova

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
)

// Instance is a machine of Nova's.
type Instance struct {
	ID      string `json:"id"`
	Project string `json:"project"`
	// Name is its name and its host's.
	Name string `json:"name"`
	// UserData is what its owner gave it; nil: nothing, which is 404.
	UserData []byte `json:"userData,omitempty"`
	// VendorData and VendorData2 are JSON; empty: "{}".
	VendorData  json.RawMessage `json:"vendorData,omitempty"`
	VendorData2 json.RawMessage `json:"vendorData2,omitempty"`
	// Address, MAC and MTU are of its port.
	Address netip.Addr `json:"address,omitzero"`
	MAC     string     `json:"mac,omitempty"`
	MTU     int        `json:"mtu,omitempty"`
}

const latest = "latest"

// openstackVersions are those of Nova 31 (nova/api/metadata/base.py).
var openstackVersions = []string{
	"2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "2016-10-06", "2017-02-22", "2018-08-27",
	"2020-10-14", "2025-04-04",
}

// document is a name below a version, and the first version that has it.
var documents = []struct{ name, since string }{
	{"meta_data.json", "2012-08-10"}, {"user_data", "2012-08-10"}, {"password", "2013-04-04"},
	{"vendor_data.json", "2013-10-17"}, {"network_data.json", "2015-10-15"}, {"vendor_data2.json", "2016-10-06"},
}

// maxPassword is MAX_SIZE of nova/api/metadata/password.py.
const maxPassword = 4 * 255

// openstack is the tree below /openstack.
func (n *Nova) openstack(i Instance, at []string, method string, body []byte) answer {
	if len(at) == 0 {
		return text(append(slices.Clone(openstackVersions), latest)...)
	}
	version := at[0]
	if version == latest {
		version = openstackVersions[len(openstackVersions)-1]
	}
	if !slices.Contains(openstackVersions, version) {
		return notFound
	}
	var names []string
	for _, d := range documents {
		if d.since <= version && (d.name != "user_data" || i.UserData != nil) {
			names = append(names, d.name)
		}
	}
	switch {
	case len(at) == 1:
		return text(names...)
	case len(at) > 2 || !slices.Contains(names, at[1]):
		return notFound
	case at[1] == "password":
		return n.password(i, method, body)
	}
	return i.document(at[1])
}

func (i Instance) document(name string) answer {
	switch name {
	case "user_data":
		return found(mimeBinary, i.UserData)
	case "vendor_data.json":
		return found(mimeJSON, orEmpty(i.VendorData))
	case "vendor_data2.json":
		return found(mimeJSON, orEmpty(i.VendorData2))
	case "network_data.json":
		return asJSON(i.network())
	}
	return asJSON(i.metadata())
}

func orEmpty(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("{}")
	}
	return raw
}

func asJSON[T any](v T) answer {
	b, err := json.Marshal(v)
	if err != nil {
		return refuse(http.StatusInternalServerError, err.Error())
	}
	return found(mimeJSON, b)
}

// password is nova/api/metadata/password.py: it is written once.
func (n *Nova) password(i Instance, method string, body []byte) answer {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case method == http.MethodGet:
		return text(n.passwords[i.ID])
	case method != http.MethodPost:
		return refuse(http.StatusBadRequest, "The server could not comply with the request.")
	case n.passwords[i.ID] != "":
		return refuse(http.StatusConflict, "There was a conflict.")
	case len(body) > maxPassword:
		return refuse(http.StatusBadRequest, "Request is too large.")
	}
	n.passwords[i.ID] = string(body)
	return text()
}

// metaData is meta_data.json.
type metaData struct {
	UUID             string            `json:"uuid"`
	ProjectID        string            `json:"project_id"`
	Hostname         string            `json:"hostname"`
	Name             string            `json:"name"`
	AvailabilityZone string            `json:"availability_zone"`
	LaunchIndex      int               `json:"launch_index"`
	Meta             map[string]string `json:"meta"`
	Devices          []string          `json:"devices"`
}

func (i Instance) metadata() metaData {
	return metaData{
		UUID: i.ID, ProjectID: i.Project, Hostname: i.Name, Name: i.Name, AvailabilityZone: "nova",
		Meta: map[string]string{}, Devices: []string{},
	}
}

// networkData is network_data.json: one link, and one network by DHCP.
type networkData struct {
	Links    []networkLink    `json:"links"`
	Networks []networkNetwork `json:"networks"`
	Services []string         `json:"services"`
}

type networkLink struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	MAC  string `json:"ethernet_mac_address"`
	MTU  int    `json:"mtu"`
	VIF  string `json:"vif_id"`
}

type networkNetwork struct {
	ID        string `json:"id"`
	Type      string `json:"type"`
	Link      string `json:"link"`
	NetworkID string `json:"network_id"`
}

func (i Instance) network() networkData {
	return networkData{
		Links:    []networkLink{{ID: "tap0", Type: "ovs", MAC: i.MAC, MTU: i.MTU, VIF: i.ID}},
		Networks: []networkNetwork{{ID: "network0", Type: "ipv4_dhcp", Link: "tap0", NetworkID: i.ID}},
		Services: []string{},
	}
}
