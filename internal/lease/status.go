package lease

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/store"
)

//go:embed lease.sql
var file string

var statements = dialect.NewStatements(file)

// Held reports whether a holder had the lease when it was read.
func Held(s *feedtype.LeaseStatus) bool { return s.State == feedtype.LeaseHeld }

// Which reads the leases that a condition selects.
func Which(ctx context.Context, st *store.Store, condition dialect.Built) ([]*feedtype.LeaseStatus, error) {
	return store.All(ctx, st, st.On(), statements, "which", dialect.Args{"condition": condition}, scan)
}

func scan(rows dialect.Rows) (*feedtype.LeaseStatus, error) {
	s := &feedtype.LeaseStatus{State: feedtype.LeaseFree}
	var acquired, now int64
	var expires sql.NullInt64
	if err := rows.Scan(&s.Name, &s.Owner, &s.Epoch, &acquired, &s.Renewals, &expires, &now); err != nil {
		return nil, err
	}
	s.Since = time.UnixMicro(acquired).UTC()
	if expires.Valid {
		s.State, s.ExpiresInSeconds = feedtype.LeaseExpired, store.Seconds(expires.Int64-now)
		if expires.Int64 > now {
			s.State = feedtype.LeaseHeld
		}
	}
	return s, nil
}

// Read reads a lease. A lease that was never acquired is free, with epoch 0.
func Read(ctx context.Context, st *store.Store, q dialect.Querier, name string) (*feedtype.LeaseStatus, error) {
	found, err := store.All(ctx, st, q, statements, "lease", dialect.Args{"name": name}, scan)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return &feedtype.LeaseStatus{Name: name, State: feedtype.LeaseFree}, nil
	}
	return found[0], nil
}

// All lists all leases that were ever acquired, by name.
func All(ctx context.Context, st *store.Store) ([]*feedtype.LeaseStatus, error) {
	if err := st.RequireSchema(ctx, st.On()); err != nil {
		return nil, err
	}
	all, err := store.All(ctx, st, st.On(), statements, "list", nil, scan)
	if err != nil {
		return nil, st.Fail("leases", "list them", err)
	}
	return all, nil
}

// releaseRow releases the lease of a claim.
func releaseRow(ctx context.Context, st *store.Store, claim dialect.Args) (n int64, err error) {
	err = st.InTx(ctx, dialect.ForRecord, "release a lease", func(tx dialect.Querier) (err error) {
		n, err = st.Exec(ctx, tx, statements, "release", claim)
		return err
	})
	return n, err
}

// Release ends a lease's claim, for operators who know that its holder is gone or stuck. It returns the claim as it was
// before. A holder that still runs learns of it when it next renews or asserts its claim. Until then its effects
// outside the database are not fenced. Epoch 0 ends the present claim. Another epoch ends that claim only: if it is
// over the error has the code Conflict. A free lease stays free.
func Release(ctx context.Context, st *store.Store, name string, epoch int64) (*feedtype.LeaseStatus, error) {
	if err := st.RequireSchema(ctx, st.On()); err != nil {
		return nil, err
	}
	seen, err := Read(ctx, st, st.On(), name)
	switch {
	case err != nil:
		return nil, st.Fail(leaseObject(name), "read its holder", err)
	case seen.Epoch == 0:
		return nil, &feedtype.Error{
			Code:   feedtype.UnknownLease,
			Object: leaseObject(name),
			Cause:  "it was never acquired",
			Next:   "`rowfeed lease list` shows the leases",
		}
	case epoch != 0 && epoch != seen.Epoch:
		return nil, changedHands(name, fmt.Sprintf("its epoch is %d, not %d", seen.Epoch, epoch))
	case seen.State == feedtype.LeaseFree:
		return seen, nil
	}
	n, err := releaseRow(ctx, st, dialect.Args{"name": name, "owner": seen.Owner, "epoch": seen.Epoch})
	if err != nil {
		return nil, st.Fail(leaseObject(name), "release it", err)
	}
	if n != 1 {
		return nil, changedHands(name, "its claim ended while it was being released")
	}
	return seen, nil
}

func changedHands(name, cause string) *feedtype.Error {
	return &feedtype.Error{
		Code:   feedtype.Conflict,
		Object: leaseObject(name),
		Cause:  cause,
		Next:   "read its present state with `rowfeed lease list`",
	}
}
