package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// Blockers implements [dialect.Rest]. It returns the transactions that have a writer's lock on the table of
// changes or, if rows hold their positions, on the source: they wrote to the source and have not ended. It
// leaves out publishers, which also write positions. It includes prepared transactions, which have no session.
func (d Dialect) Blockers(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (found []dialect.Blocker, unseen *dialect.Unseen, err error) {
	if f.ULIDs != nil {
		found, err = d.mayHold(ctx, q, f)
		return withUnseen(ctx, q, found, err)
	}
	found, err = dialect.QueryAll(ctx, q, `WITH locks AS (
  SELECT l.* FROM pg_locks l
  WHERE l.locktype = 'relation' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
), held AS (
  SELECT l.pid, l.virtualtransaction, 'wrote to the feed''s table' AS scope FROM locks l
  WHERE l.granted AND l.mode = 'RowExclusiveLock'
    -- a writer may name a partition itself
    AND (l.relation = $1::text::regclass OR l.relation IN (SELECT relid FROM pg_partition_tree($1::text::regclass)))
    AND NOT EXISTS (SELECT 1 FROM pg_locks p WHERE p.locktype = 'relation' `+
		`AND p.virtualtransaction = l.virtualtransaction
      AND p.relation = $2::text::regclass AND p.mode = 'RowExclusiveLock')
), locking AS (
  -- Pages and publishers wait for this mode alone, also while its session itself waits for others.
  SELECT l.pid, l.granted FROM locks l WHERE l.mode = 'AccessExclusiveLock' AND l.relation = $3::text::regclass
), found AS (
  SELECT * FROM held
  UNION ALL SELECT l.pid, '', 'locks the feed''s table, or waits to lock it' FROM locking l
  UNION ALL SELECT b.pid, '', 'has used the feed''s table, which another session waits to lock' FROM (
    SELECT DISTINCT unnest(pg_blocking_pids(l.pid)) AS pid FROM locking l WHERE NOT l.granted
  ) b
)
SELECT 'pid ' || a.pid, COALESCE(a.usename::text, ''), COALESCE(host(a.client_addr), 'local'),
  COALESCE((extract(epoch FROM clock_timestamp() - a.xact_start) * 1000000)::bigint, -1), COALESCE(a.state || ': ', `+
		`'') || left(a.query, 500), found.scope, a.xact_start
-- of other roles' sessions only members of pg_read_all_stats are told the time, host and statement
FROM found JOIN pg_stat_activity a ON a.pid = found.pid
WHERE a.pid <> pg_backend_pid()
UNION ALL
SELECT 'prepared transaction ' || x.gid, x.owner::text, '', (extract(epoch FROM clock_timestamp() - x.prepared) * `+
		`1000000)::bigint,
  'waits for COMMIT PREPARED or ROLLBACK PREPARED', held.scope, x.prepared
-- its locks go by the number that its session had for it, and by no session
FROM held JOIN pg_locks i ON i.pid IS NULL AND i.virtualtransaction = held.virtualtransaction `+
		`AND i.locktype = 'transactionid'
JOIN pg_prepared_xacts x ON x.transaction = i.transactionid
WHERE held.pid IS NULL
ORDER BY 7`, []any{dialect.Qualified(d, f.Written()), dialect.Qualified(d, f.Positions()),
		dialect.Qualified(d, f.Source)},
		func(rows dialect.Rows) (dialect.Blocker, error) {
			var b dialect.Blocker
			var started any
			var statement *string
			err := rows.Scan(&b.Session, &b.User, &b.Host, &b.AgeMicros, &statement, &b.Scope, &started)
			if statement != nil {
				b.Statement = *statement
			}
			return b, err
		})
	return withUnseen(ctx, q, found, err)
}

// withUnseen says so if this login cannot see the details of a transaction that was found. An unknown age is
// the sign: every transaction has a start time.
func withUnseen(ctx context.Context, q dialect.Querier, found []dialect.Blocker,
	err error) ([]dialect.Blocker, *dialect.Unseen, error) {
	if err != nil || !slices.ContainsFunc(found, func(b dialect.Blocker) bool { return b.AgeMicros < 0 }) {
		return found, nil, err
	}
	var login string
	if err := dialect.QueryRow(ctx, q, "SELECT quote_ident(current_user)", nil, &login); err != nil {
		return nil, nil, err
	}
	return found, &dialect.Unseen{Cause: "the login " + login +
		" is not told since when other roles' transactions run, from where, and what they do: " +
		"it lacks pg_read_all_stats",
		Next: "run `GRANT pg_read_all_stats TO " + login + "`"}, nil
}

// Backlog implements [dialect.Rest].
func (d Dialect) Backlog(ctx context.Context, q dialect.Querier, f *dialect.Feed, limit int,
	shard ...int) (count, age int64, err error) {
	b := dialect.NewBuilder(d)
	since, from := dialect.OldestWaiting(d, b, f, shard)
	err = dialect.QueryRow(ctx, q, "SELECT "+dialect.CountWaiting(d, f, limit)+", "+
		"COALESCE((SELECT (extract(epoch FROM clock_timestamp() - "+since+") * 1000000)::bigint"+from+"), 0)",
		b.Args(), &count, &age)
	return count, age, err
}

// Classify implements [dialect.Rest] by the SQLSTATE,
// https://www.postgresql.org/docs/current/errcodes-appendix.html.
func (Dialect) Classify(err error) dialect.Class {
	if errors.Is(err, dialect.ErrReadOnly) {
		return dialect.ClassReadOnly
	}
	if errors.Is(err, dialect.ErrNoTable) {
		return dialect.ClassUndefined
	}
	var coded interface{ SQLState() string }
	if !errors.As(err, &coded) {
		if dialect.IsConnection(err) {
			return dialect.ClassConnection
		}
		return dialect.ClassOther
	}
	code := coded.SQLState()
	switch code {
	case "40001", "40P01", // serialization_failure, deadlock_detected
		// feature_not_supported: a column's type has changed under a prepared statement, which the driver
		// prepares again
		"0A000":
		return dialect.ClassRetry
	case "55P03": // lock_not_available
		return dialect.ClassLockTimeout
	case "42P01", "42703", "42883", "3F000", // undefined table, column, function; invalid schema
		"3B001", "25P01": // undefined savepoint; no transaction
		return dialect.ClassUndefined
	case "25006": // read_only_sql_transaction
		return dialect.ClassReadOnly
	case "42501": // insufficient_privilege
		return dialect.ClassPermission
	case "23505": // unique_violation
		return dialect.ClassDuplicate
	// Timeouts of an idle transaction and of a transaction, shutdown, crash, cannot connect now, too many
	// connections.
	case "25P03", "25P04", "57P01", "57P02", "57P03", "53300":
		return dialect.ClassConnection
	case "54000": // program_limit_exceeded: a value that is too large for an index
		return dialect.ClassInvalid
	case "53100", "53400": // disk_full, configuration_limit_exceeded
		return dialect.ClassFull
	}
	switch {
	case strings.HasPrefix(code, "08"): // connection exceptions
		return dialect.ClassConnection
	case strings.HasPrefix(code, "28"): // invalid authorization
		return dialect.ClassPermission
	case strings.HasPrefix(code, "22"): // data exceptions
		return dialect.ClassInvalid
	}
	return dialect.ClassOther
}
