package mysql

import (
	"context"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
)

// tableHolders implements Writers for MySQL. It returns the transactions that hold a metadata lock for writing
// on the table. A statement takes this lock before it draws its first number, and takes it for the tables of
// triggers, too. The lock is released after the commit, or by the rollback to a savepoint that removes the
// rows. Its name is the thread, and the event in which it was requested.
//
// XA PREPARE transfers the lock to the server, under another name. Such a lock may be that of any transaction
// that was open before. After a restart it belongs to a thread of the server. The list is read piece by piece,
// so a lock that is just being transferred may be missing in both places. A lock is transferred only once, so
// tableHolders reads the list twice.
//
// The reader itself takes a lock on the table. Both lists must show it: this proves that the server keeps the
// list, and that it has this name for the table.
func (d Dialect) tableHolders(ctx context.Context, q dialect.Querier,
	f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	table, number := f.Waiting()
	if _, err := dialect.QueryAll(ctx, q, "SELECT 1 FROM "+dialect.Qualified(d, table)+" WHERE "+number+" = 0", nil,
		func(dialect.Rows) (struct{}, error) { return struct{}{}, nil }); err != nil {
		return nil, false, err
	}
	for range 2 {
		own := false
		_, err := dialect.QueryAll(ctx, q,
			`SELECT m.OWNER_THREAD_ID = PS_CURRENT_THREAD_ID(), m.LOCK_TYPE IN ('SHARED', 'SHARED_HIGH_PRIO', `+
				`'SHARED_READ', 'SHARED_READ_ONLY'),
  COALESCE(m.SOURCE NOT LIKE '%mdl.cc:%', 0) = 0 OR NOT EXISTS (SELECT 1 FROM performance_schema.threads t `+
				`WHERE t.THREAD_ID = m.OWNER_THREAD_ID AND t.TYPE = 'FOREGROUND'), `+
				`CONCAT(COALESCE(m.OWNER_THREAD_ID, 0), ':', COALESCE(m.OWNER_EVENT_ID, 0))
FROM performance_schema.metadata_locks m
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND m.OBJECT_NAME = ?`+
				whole, []any{table.Schema, table.Name},
			func(rows dialect.Rows) (struct{}, error) {
				var w dialect.Writer
				var mine *bool
				var reads bool
				err := rows.Scan(&mine, &reads, &w.Orphan, &w.Transaction)
				own = own || mine != nil && *mine
				if w.Session = w.Transaction; !reads && !slices.Contains(open, w) {
					open = append(open, w)
				}
				return struct{}{}, err
			})
		if err != nil || !own {
			return nil, false, err
		}
	}
	// Asked last: whether locks or threads did not fit into the lists. Numbers are also drawn elsewhere if this
	// server is configured to apply another server's writes, or belongs to a cluster.
	err = dialect.QueryRow(ctx, q,
		`SELECT NOT EXISTS (SELECT 1 FROM performance_schema.replication_connection_configuration)
  AND NOT EXISTS (SELECT 1 FROM performance_schema.global_variables WHERE VARIABLE_NAME = 'wsrep_on' `+
			`AND VARIABLE_VALUE = 'ON')
  AND (SELECT COUNT(*) = 2 AND SUM(VARIABLE_VALUE) = 0 FROM performance_schema.global_status `+
			`WHERE VARIABLE_NAME IN ('Performance_schema_metadata_lock_lost', `+
			`'Performance_schema_thread_instances_lost'))
  AND EXISTS (SELECT 1 FROM performance_schema.setup_instruments WHERE NAME = 'wait/lock/metadata/sql/mdl' `+
			`AND ENABLED = 'YES')`, nil, &told)
	return open, told, err
}
