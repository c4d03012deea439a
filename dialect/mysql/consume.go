package mysql

import (
	"strings"

	"github.com/rowfeed/rowfeed/dialect"
)

// consumerTables are the tables that consumers write, see [dialect.Migration]. What
// is compared is ASCII: a key's text can be longer than an index takes, so that its
// digest stands for it.
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

// InsertNew implements [dialect.Spelling] with IGNORE: the rows affected are then 0 for
// a row that is there, whatever the driver's clientFoundRows. It would also cut values
// that are too long, which is why the root checks their lengths.
func (Dialect) InsertNew(table string, columns, values, _ []string) string {
	return "INSERT IGNORE INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES (" + strings.Join(values, ", ") + ")"
}
