package ovsdb

import (
	"errors"
	"fmt"

	"github.com/ovn-org/libovsdb/ovsdb"
)

var (
	// ErrNotConnected: nothing was sent.
	ErrNotConnected = errors.New("not connected to the database")
	// ErrOutcomeUnknown: the connection was lost, or the context ended, after the transaction
	// was sent. It may or may not have been committed, and is no failure.
	ErrOutcomeUnknown = errors.New("the database has not answered: the transaction may have been committed, or not")
	// ErrConflict: a wait of the transaction found other rows than those that it was computed
	// from.
	ErrConflict = errors.New("rows have changed since they were read")
	// ErrNotOwner: an Assert of the transaction found that the connection does not hold the lock.
	ErrNotOwner = errors.New("the session does not hold the lock")
	// ErrExists: a row with the UUID of an InsertAs is there, or was deleted by the transaction.
	ErrExists = errors.New("a row with this UUID is there")
)

// notAllowed is what a standby answers to a write.
const notAllowed = "not allowed"

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

// Is tells whether it is ErrConflict, ErrNotOwner or ErrExists.
func (e *OperationError) Is(target error) bool {
	switch target {
	case ErrConflict:
		return e.Op == ovsdb.OperationWait && e.Name == "timed out"
	case ErrNotOwner:
		return e.Op == ovsdb.OperationAssert && e.Name == "not owner"
	case ErrExists:
		return e.Op == ovsdb.OperationInsert && e.Name == "duplicate uuid"
	}
	return false
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
