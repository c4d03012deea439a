package mysql

import (
	"context"
	"slices"

	"github.com/rowfeed/rowfeed/dialect"
)

// tableHolders are MySQL's Writers: whoever has a metadata lock on the table for writing. A statement has it
// before it draws its first number, a trigger's table with its own, and it goes behind the commit, or with the rollback to a
// savepoint that makes the rows void. A transaction's lock has a name of its own: the thread, and the event in which it was asked for.
//
// XA PREPARE hands it on to the server, under another name: such a lock may be anybody's of before. The list is read
// piece by piece, so that a lock may be on neither side while it is handed on; that happens once, and there are two lists. After a restart
// such a lock is of a thread of the server's own. A lock that the
// reader takes itself must be on both: the list is kept, and is of this table.
func (d Dialect) tableHolders(ctx context.Context, q dialect.Querier, f *dialect.Feed) (open []dialect.Writer, told bool, err error) {
	table, number := f.Waiting()
	if _, err := dialect.QueryAll(ctx, q, "SELECT 1 FROM "+dialect.Qualified(d, table)+" WHERE "+number+" = 0", nil, func(dialect.Rows) (struct{}, error) { return struct{}{}, nil }); err != nil {
		return nil, false, err
	}
	for range 2 {
		own := false
		_, err := dialect.QueryAll(ctx, q, `SELECT m.OWNER_THREAD_ID = PS_CURRENT_THREAD_ID(), m.LOCK_TYPE IN ('SHARED', 'SHARED_HIGH_PRIO', 'SHARED_READ', 'SHARED_READ_ONLY'),
  COALESCE(m.SOURCE NOT LIKE '%mdl.cc:%', 0) = 0 OR NOT EXISTS (SELECT 1 FROM performance_schema.threads t WHERE t.THREAD_ID = m.OWNER_THREAD_ID AND t.TYPE = 'FOREGROUND'), CONCAT(COALESCE(m.OWNER_THREAD_ID, 0), ':', COALESCE(m.OWNER_EVENT_ID, 0))
FROM performance_schema.metadata_locks m
WHERE m.OBJECT_TYPE = 'TABLE' AND m.OBJECT_SCHEMA = COALESCE(NULLIF(?, ''), DATABASE()) AND m.OBJECT_NAME = ?`+whole, []any{table.Schema, table.Name},
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
	// Behind the lists: what did not fit into them. Where another server's writes are applied, if only when that goes
	// on, or this is one of a cluster's, numbers are drawn that are not seen here.
	err = dialect.QueryRow(ctx, q, `SELECT NOT EXISTS (SELECT 1 FROM performance_schema.replication_connection_configuration)
  AND NOT EXISTS (SELECT 1 FROM performance_schema.global_variables WHERE VARIABLE_NAME = 'wsrep_on' AND VARIABLE_VALUE = 'ON')
  AND (SELECT COUNT(*) = 2 AND SUM(VARIABLE_VALUE) = 0 FROM performance_schema.global_status WHERE VARIABLE_NAME IN ('Performance_schema_metadata_lock_lost', 'Performance_schema_thread_instances_lost'))
  AND EXISTS (SELECT 1 FROM performance_schema.setup_instruments WHERE NAME = 'wait/lock/metadata/sql/mdl' AND ENABLED = 'YES')`, nil, &told)
	return open, told, err
}
