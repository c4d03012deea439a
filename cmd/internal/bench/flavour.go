package bench

// flavour has the bench's own SQL for a database.
type flavour struct {
	// key is the type of a table's id.
	key string
	// parameter is added to the URL of the writers' connections, if the driver would otherwise need more than one
	// round trip for a statement.
	parameter string
	// tables lists names that begin with stem. Its only argument is the schema.
	tables string
	// others list names of other objects in the same way, in the order in which to drop them after the tables.
	others []others
	// busy counts statements of other sessions whose text contains the argument. A server may finish a statement
	// after its client has gone. Every user sees the statements of the same user. The query is empty if a statement
	// always ends with its client.
	busy string
	// standby asks whether the server is a standby. The query is empty if the dialect's Identity can tell before
	// rowfeed's tables exist.
	standby string
	// analyze updates a table's statistics after it was filled. It is empty if that would leave something in the
	// database.
	analyze string
	// version returns the product and its version. Each of settings decides whether and how fast a commit is on the
	// disk.
	version  string
	settings []setting
}

// others are objects of a kind, as DROP names it, and the query for their names.
type others struct{ kind, query string }

// setting is a setting of the server, and the query for its value.
type setting struct{ name, query string }

// flavours is keyed by the dialect's name. The bench is an application with SQL of its own, so this is no dialect's.
var flavours = map[string]flavour{
	"sqlite": {
		key: "INTEGER", // the rowid, as in most SQLite tables
		// ANALYZE would leave the table sqlite_stat1 behind.
		tables:  "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE '" + stem + "%' AND ? IS NOT NULL",
		version: "SELECT 'SQLite ' || sqlite_version()",
		settings: []setting{
			{"journal_mode", "SELECT journal_mode FROM pragma_journal_mode"},
			{"synchronous",
				"SELECT CASE synchronous WHEN 0 THEN 'OFF' WHEN 1 THEN 'NORMAL' WHEN 2 THEN 'FULL' WHEN 3 THEN " +
					"'EXTRA' ELSE synchronous END FROM pragma_synchronous"},
		},
	},
	"postgres": {
		key: "bigint",
		tables: "SELECT c.relname::text FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = " +
			"c.relnamespace WHERE c.relkind = 'r' AND c.relname LIKE '" +
			stem + "%' AND n.nspname = $1",
		others: []others{{"FUNCTION", "SELECT p.proname::text FROM pg_catalog.pg_proc p " +
			"JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE p.proname LIKE '" +
			stem + "%' AND n.nspname = $1"}},
		busy: "SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE pid <> pg_catalog.pg_backend_pid() AND " +
			"backend_type = 'client backend' AND state <> 'idle' AND strpos(query, $1) > 0",
		standby: "SELECT pg_catalog.pg_is_in_recovery()",
		analyze: "ANALYZE %s",
		version: "SELECT 'PostgreSQL ' || current_setting('server_version')",
		settings: []setting{
			{"fsync", "SELECT current_setting('fsync')"},
			{"full_page_writes", "SELECT current_setting('full_page_writes')"},
			{"synchronous_commit", "SELECT current_setting('synchronous_commit')"},
			{"synchronous_standby_names", "SELECT current_setting('synchronous_standby_names')"},
			{"wal_level", "SELECT current_setting('wal_level')"},
		},
	},
	"mysql": {
		key:       "bigint",
		parameter: "interpolateParams=true",
		tables: "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' " +
			"AND table_name LIKE '" +
			stem + "%' AND table_schema = ?",
		busy: "SELECT count(*) FROM information_schema.processlist WHERE id <> CONNECTION_ID() " +
			"AND INSTR(info, ?) > 0",
		analyze: "ANALYZE NO_WRITE_TO_BINLOG TABLE %s",
		version: "SELECT CONCAT(IF(VERSION() LIKE '%MariaDB%', 'MariaDB ', 'MySQL '), VERSION())",
		settings: []setting{
			{"innodb_flush_log_at_trx_commit", "SELECT @@GLOBAL.innodb_flush_log_at_trx_commit"},
			{"log_bin", "SELECT @@GLOBAL.log_bin"},
			{"sync_binlog", "SELECT @@GLOBAL.sync_binlog"},
			{"innodb_doublewrite", "SELECT @@GLOBAL.innodb_doublewrite"},
		},
	},
	"sqlserver": {
		key:    "bigint",
		tables: ownObjects + "'U'",
		others: []others{{"SEQUENCE", ownObjects + "'SO'"}, {"PROCEDURE", ownObjects + "'P'"}},
		// Without VIEW SERVER STATE it counts nothing.
		busy: "SELECT count(*) FROM sys.dm_exec_requests AS r CROSS APPLY sys.dm_exec_sql_text(r.sql_handle) AS q " +
			"WHERE r.session_id <> @@SPID AND r.database_id = DB_ID() AND CHARINDEX(@p1, q.text) > 0",
		analyze: "UPDATE STATISTICS %s",
		version: "SELECT CONCAT('SQL Server ', CONVERT(nvarchar(128), SERVERPROPERTY('ProductVersion')))",
		settings: []setting{
			{"recovery_model", ownDatabase("recovery_model_desc")},
			{"delayed_durability", ownDatabase("delayed_durability_desc")},
			{"read_committed_snapshot", ownDatabase("CONVERT(varchar(1), is_read_committed_snapshot_on)")},
		},
	},
}

// ownObjects lists objects of SQL Server; the type of objects follows.
const ownObjects = "SELECT o.name FROM sys.objects AS o WHERE o.name LIKE '" + stem + "%' AND " +
	"SCHEMA_NAME(o.schema_id) = @p1 AND o.type = "

// ownDatabase reads a setting of a database of SQL Server.
func ownDatabase(setting string) string {
	return "SELECT " + setting + " FROM sys.databases WHERE name = DB_NAME()"
}
