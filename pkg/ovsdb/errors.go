package ovsdb

import (
	"errors"
	"fmt"
)

var (
	// ErrNotConnected: nothing was sent.
	ErrNotConnected = errors.New("not connected to the database")
	// ErrOutcomeUnknown: the connection was lost after the transaction was sent.
	// It may or may not have been committed.
	ErrOutcomeUnknown = errors.New("connection lost before the database answered")
)

// OperationError is a transaction that the server refused. Nothing of it was
// committed.
type OperationError struct {
	// Index is the operation's place in the transaction; it is the number of
	// operations when the commit as a whole failed.
	Index int
	// Op and Table are the operation's; empty when the commit failed.
	Op, Table string
	// Name and Details are the server's, e.g. "constraint violation".
	Name, Details string
}

func (e *OperationError) Error() string {
	where := "commit"
	if e.Op != "" {
		where = fmt.Sprintf("%s in table %s", e.Op, e.Table)
	}
	if e.Details == "" {
		return fmt.Sprintf("%s: %s", where, e.Name)
	}
	return fmt.Sprintf("%s: %s: %s", where, e.Name, e.Details)
}

// PermissionError is what RBAC answers to a write that the client's role does
// not allow (ovsdb-server's role-based access control, SB table RBAC_Role).
type PermissionError struct{ OperationError }

// Unwrap gives the OperationError.
func (e *PermissionError) Unwrap() error { return &e.OperationError }

// ConstraintError is a violated constraint or reference, RFC 7047 section 4.1.3.
type ConstraintError struct{ OperationError }

// Unwrap gives the OperationError.
func (e *ConstraintError) Unwrap() error { return &e.OperationError }

// newOperationError picks the type by the server's error name.
func newOperationError(e OperationError) error {
	switch e.Name {
	case "permission error":
		return &PermissionError{e}
	case "constraint violation", "referential integrity violation":
		return &ConstraintError{e}
	default:
		return &e
	}
}

// protocolError is a server that does not speak OVSDB as expected.
func protocolError(format string, args ...any) error {
	return fmt.Errorf("protocol error: "+format, args...)
}
