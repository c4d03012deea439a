package rowfeed

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
)

// LeaseStatus is how a lease stands, on the database's clock.
type LeaseStatus struct {
	Name string `json:"name"`
	// State is LeaseHeld, LeaseExpired (its holder has not renewed, and anybody may
	// acquire it) or LeaseFree.
	State string `json:"state"`
	// Owner of the current or last term, host/pid/random; empty once it is released.
	Owner string `json:"owner"`
	Epoch int64  `json:"epoch"` // of the current or last term
	// Since is when that term began.
	Since time.Time `json:"since"`
	// ExpiresInSeconds is the time left; negative when it is over, 0 when it is free.
	ExpiresInSeconds float64 `json:"expires_in_seconds"`
	Renewals         int64   `json:"renewals"` // in that term
}

// The states of a lease.
const (
	LeaseHeld    = "held"
	LeaseExpired = "expired"
	LeaseFree    = "free"
)

func (s *LeaseStatus) held() bool { return s.State == LeaseHeld }

func (db *DB) leaseColumns() string {
	return "SELECT name, owner, epoch, acquired_at, renewals, expires_at, " + db.store.Dialect.Now() + " FROM " + db.store.Table("leases")
}

func scanLease(rows dialect.Rows) (*LeaseStatus, error) {
	s := &LeaseStatus{State: LeaseFree}
	var acquired, now int64
	var expires sql.NullInt64
	if err := rows.Scan(&s.Name, &s.Owner, &s.Epoch, &acquired, &s.Renewals, &expires, &now); err != nil {
		return nil, err
	}
	s.Since = time.UnixMicro(acquired).UTC()
	if expires.Valid {
		s.State, s.ExpiresInSeconds = LeaseExpired, seconds(expires.Int64-now)
		if expires.Int64 > now {
			s.State = LeaseHeld
		}
	}
	return s, nil
}

// lookAtLease reads a lease's row; one that nobody has acquired yet is free, with
// epoch 0.
func (db *DB) lookAtLease(ctx context.Context, q dialect.Querier, name string) (*LeaseStatus, error) {
	b := dialect.NewBuilder(db.store.Dialect)
	found, err := dialect.QueryAll(ctx, q, db.leaseColumns()+" WHERE name = "+b.Arg(name), b.Args(), scanLease)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return &LeaseStatus{Name: name, State: LeaseFree}, nil
	}
	return found[0], nil
}

// Leases lists all leases that were ever acquired, by name. See CurrentLeases.
func (db *DB) Leases(ctx context.Context) ([]*LeaseStatus, error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	all, err := dialect.QueryAll(ctx, db.store.On(), db.leaseColumns()+" ORDER BY name", nil, scanLease)
	if err != nil {
		return nil, db.store.Fail("leases", "list them", err)
	}
	return all, nil
}

// CurrentLeases lists them without what is left of consumers' shards that are over: nobody
// holds them, and the consumer has another number of shards by now, or was dropped. Their
// rows stay, since no epoch ever comes again.
func (db *DB) CurrentLeases(ctx context.Context) ([]*LeaseStatus, error) {
	all, err := db.Leases(ctx)
	if err != nil || !slices.ContainsFunc(all, (*LeaseStatus).isConsumers) {
		return all, err
	}
	prefixes, err := dialect.QueryAll(ctx, db.store.On(), "SELECT consumer, feed, shard_count FROM "+db.store.Table("cursors")+
		" UNION SELECT consumer, feed, shard_count FROM "+db.store.Table("consumers"), nil,
		func(rows dialect.Rows) (prefix string, err error) {
			var consumer, feed string
			var count int
			err = rows.Scan(&consumer, &feed, &count)
			return groupPrefix(ConsumerGroup(consumer, feed), count), err
		})
	if err != nil {
		return nil, db.store.Fail("leases", "list the consumers", err)
	}
	return slices.DeleteFunc(all, func(s *LeaseStatus) bool {
		return s.isConsumers() && !s.held() && !slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(s.Name, p) })
	}), nil
}

// isConsumers tells whether it is of a consumer's shard, or its seat.
func (s *LeaseStatus) isConsumers() bool { return strings.HasPrefix(s.Name, consumerLeases) }

// freeLease frees the lease of the condition; it keeps its epoch, which must never
// come again.
func (db *DB) freeLease(ctx context.Context, which func(*dialect.Builder) string) (n int64, err error) {
	b := dialect.NewBuilder(db.store.Dialect)
	query := "UPDATE " + db.store.Table("leases") + " SET owner = '', expires_at = NULL, renewals = renewals + 1 WHERE " + which(b)
	err = db.store.InTx(ctx, dialect.ForRecord, "release a lease", func(tx dialect.Querier) (err error) {
		n, err = tx.Exec(ctx, query, b.Args()...)
		return err
	})
	return n, err
}

// ReleaseLease takes a lease from whoever holds it, for operators who know that the
// holder is gone or stuck, and answers the term that it ended: its State is what it was
// before. A holder that still lives learns of it when it next renews or asserts its term;
// what it does outside of the database until then is not fenced. epoch 0 ends the term
// that there is; another one that term only, and the code Conflict says that it is over.
// A lease that is free stays so.
func (db *DB) ReleaseLease(ctx context.Context, name string, epoch int64) (*LeaseStatus, error) {
	if err := db.store.RequireSchema(ctx, db.store.On()); err != nil {
		return nil, err
	}
	seen, err := db.lookAtLease(ctx, db.store.On(), name)
	switch {
	case err != nil:
		return nil, db.store.Fail(leaseObject(name), "look who holds it", err)
	case seen.Epoch == 0:
		return nil, &feedtype.Error{Code: feedtype.UnknownLease, Object: leaseObject(name), Cause: "nobody has ever acquired it", Next: "`rowfeed lease list` shows the leases"}
	case epoch != 0 && epoch != seen.Epoch:
		return nil, changedHands(name, fmt.Sprintf("its epoch is %d, not %d", seen.Epoch, epoch))
	case seen.State == LeaseFree:
		return seen, nil
	}
	n, err := db.freeLease(ctx, func(b *dialect.Builder) string {
		return "name = " + b.Arg(name) + " AND owner = " + b.Arg(seen.Owner) + " AND epoch = " + b.Arg(seen.Epoch)
	})
	if err != nil {
		return nil, db.store.Fail(leaseObject(name), "release it", err)
	}
	if n != 1 {
		return nil, changedHands(name, "its term ended in this moment")
	}
	return seen, nil
}

func changedHands(name, cause string) *feedtype.Error {
	return &feedtype.Error{Code: feedtype.Conflict, Object: leaseObject(name), Cause: cause, Next: "look again with `rowfeed lease list`"}
}
