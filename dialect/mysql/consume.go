package mysql

import (
	"strconv"
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// consumerTables makes the tables that consumers write. All that is compared is ASCII. A key's text can be
// longer than an index accepts, so the primary key contains its digest.
func (d Dialect) consumerTables(table func(base string) string) dialect.Migration {
	ascii := func(kind string) string { return " " + kind + " CHARACTER SET ascii COLLATE ascii_bin NOT NULL" }
	who := "\n  consumer" + ascii("varchar(100)") + ",\n  feed" + ascii("varchar(39)") + ","
	return dialect.Migration{
		Version: 2,
		Title:   "cursors, dead letters, processed ids",
		Up: []string{
			"CREATE TABLE IF NOT EXISTS " + table("cursors") + " (" + who + `
  shard bigint NOT NULL,
  shard_count int NOT NULL,
  value` + ascii("text") + `,
  generation bigint NOT NULL,
  epoch bigint NOT NULL,
  version bigint NOT NULL,
  paused smallint NOT NULL,
  aside bigint NOT NULL DEFAULT 0,
  updated_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, shard)
)` + tableOptions,
			"CREATE TABLE IF NOT EXISTS " + table("dead_letters") + " (" + who + `
  shard bigint NOT NULL,
  key_digest` + ascii("char(64)") + `,
  key_json longtext NOT NULL,
  generation bigint NOT NULL,
  position` + ascii("varchar(40)") + `,
  op` + ascii("varchar(10)") + `,
  state` + ascii("varchar(20)") + `,
  attempts bigint NOT NULL,
  collapsed bigint NOT NULL,
  error longtext NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, shard, key_digest)
)` + tableOptions,
			"CREATE TABLE IF NOT EXISTS " + table("processed") + " (" + who + `
  generation bigint NOT NULL,
  shard bigint NOT NULL,
  position` + ascii("varchar(40)") + `,
  processed_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
)` + tableOptions,
			"INSERT IGNORE INTO " + table("schema_version") + " (version, applied_at) VALUES (2, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE IF EXISTS " + table("processed"),
			"DROP TABLE IF EXISTS " + table("dead_letters"),
			"DROP TABLE IF EXISTS " + table("cursors"),
			"DELETE FROM " + table("schema_version") + " WHERE version = 2",
		},
	}
}

// letterShards adds the data shard of a dead letter's key. The dead letter follows its key to another shard of
// the consumer.
func (d Dialect) letterShards(n dialect.Names, table func(base string) string) dialect.Migration {
	return d.addsColumn(n, table, 5, "data shards of dead letters", "dead_letters", "data_shard", "bigint NULL")
}

// cursorFailures adds the reason why a shard of a consumer rests, for operators.
func (d Dialect) cursorFailures(n dialect.Names, table func(base string) string) dialect.Migration {
	return d.addsColumn(n, table, 6, "why a consumer's shard rests", "cursors", "failure", "longtext NULL")
}

// addsColumn returns a version that adds a column.
func (d Dialect) addsColumn(n dialect.Names, table func(base string) string, version int, title, to, column,
	definition string) dialect.Migration {
	add := "ALTER TABLE " + table(to) + " ADD COLUMN " + column + " " + definition
	return dialect.Migration{
		Version: version,
		Title:   title,
		Up: append(d.once(n)("column", to, column, add), "INSERT IGNORE INTO "+table("schema_version")+
			" (version, applied_at) VALUES ("+strconv.Itoa(version)+", "+d.Now()+")"),
		// the column is dropped with its table
		Down: []string{"DELETE FROM " + table("schema_version") + " WHERE version = " + strconv.Itoa(version)},
	}
}

// once returns statements that add a column or an index. They must be repeatable, but MySQL has no ADD COLUMN IF NOT
// EXISTS. So they prepare the statement only if the catalog does not have the object.
func (d Dialect) once(n dialect.Names) func(kind, to, name, ddl string) []string {
	schema := "DATABASE()"
	if n.Schema != "" {
		schema = d.Literal(n.Schema)
	}
	return func(kind, to, name, ddl string) []string {
		view := map[string]string{"column": "columns", "index": "statistics"}[kind]
		return []string{
			"SET @rowfeed_add = (SELECT IF(COUNT(*) = 0, " + d.Literal(ddl) +
				", 'DO 0') FROM information_schema." + view + " WHERE table_schema = " + schema +
				" AND table_name = " + d.Literal(n.Table(to).Name) +
				" AND " + kind + "_name = " + d.Literal(name) + ")",
			"PREPARE rowfeed_add FROM @rowfeed_add",
			"EXECUTE rowfeed_add",
			"DEALLOCATE PREPARE rowfeed_add",
			"SET @rowfeed_add = NULL",
		}
	}
}

// InsertNew implements [dialect.Spelling] with INSERT IGNORE. For a row that exists already, the rows affected
// are then 0, whatever the driver's clientFoundRows. IGNORE also cuts values that are too long, so rowfeed
// checks their lengths before.
func (Dialect) InsertNew(table string, columns, values, _ []string) string {
	return "INSERT IGNORE INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" +
		strings.Join(values, ", ") + ")"
}
