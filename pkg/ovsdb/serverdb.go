package ovsdb

import (
	"encoding/json"
	"errors"
	"fmt"
)

// serverDatabase is the database that describes the others, ovsdb-server(5).
const serverDatabase = "_Server"

// serverRow is a row of _Server's table Database.
type serverRow struct {
	name, model, cid  string
	connected, leader bool
	hasSchema         bool
	index             int64 // of the RAFT log; 0 if not clustered
}

// serverRows keeps the undecoded rows, so that modifications merge by column.
// None of the columns holds more than one value, hence a modification is the new
// value.
type serverRows map[string]rawRow

func (s serverRows) update(updates tableUpdates) error {
	for uuid, u := range updates["Database"] {
		switch {
		case u == nil:
			return protocolError("null where an update of _Server belongs")
		case u.deleted:
			delete(s, uuid)
		case u.Initial != nil:
			s[uuid] = *u.Initial
		case u.Insert != nil:
			s[uuid] = *u.Insert
		default:
			if s[uuid] == nil {
				s[uuid] = rawRow{}
			}
			for name, value := range *u.Modify {
				s[uuid][name] = value
			}
		}
	}
	return nil
}

func (s serverRows) find(name string) (serverRow, bool, error) {
	for _, raw := range s {
		row, err := decodeServerRow(raw)
		if err != nil {
			return row, false, fmt.Errorf("_Server table Database: %w", err)
		}
		if row.name == name {
			return row, true, nil
		}
	}
	return serverRow{}, false, nil
}

func decodeServerRow(raw rawRow) (serverRow, error) {
	var row serverRow
	var errs []error
	text := func(column string, into any) {
		if value, ok := raw[column]; ok {
			errs = append(errs, json.Unmarshal(value, into))
		}
	}
	text("name", &row.name)
	text("model", &row.model)
	text("connected", &row.connected)
	text("leader", &row.leader)
	// An optional column is ["set",[]] when empty.
	optional := func(column string) (json.RawMessage, bool) {
		value, ok := raw[column]
		if !ok {
			return nil, false
		}
		atoms, err := setAtoms(value)
		errs = append(errs, err)
		if len(atoms) == 0 {
			return nil, false
		}
		return atoms[0], true
	}
	_, row.hasSchema = optional("schema")
	if cid, ok := optional("cid"); ok {
		row.cid = string(cid)
	}
	if index, ok := optional("index"); ok {
		errs = append(errs, json.Unmarshal(index, &row.index))
	}
	return row, errors.Join(errs...)
}

// suitable says why a server is not to be used now, as the _Server row tells.
// The rules are those of ovsdb-server(5): a cluster's member without a quorum or
// a relay without a source has connected false; a member that has not joined has
// no schema.
func (row serverRow) suitable(leaderOnly bool) error {
	if row.model == "clustered" {
		switch {
		case !row.hasSchema:
			return errors.New("this server has not joined its cluster yet")
		case !row.connected:
			return errors.New("this server has lost its cluster's quorum")
		case leaderOnly && !row.leader:
			return errors.New("this server is not the cluster's leader")
		}
	}
	if row.model == "relay" && (!row.connected || !row.hasSchema) {
		return errors.New("this relay has lost its source")
	}
	return nil
}
