package sqlite

import "github.com/rowfeed/rowfeed/dialect"

// consumerTables makes the tables that consumers write. Positions of processed entries are compared as text.
// cursors.aside counts the dead letters of a shard, so that no query looks for them while there are none.
func (d Dialect) consumerTables(name func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 2,
		Title:   "cursors, dead letters, processed ids",
		Up: []string{
			"CREATE TABLE " + name("cursors") + ` (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  shard_count INTEGER NOT NULL,
  value TEXT NOT NULL,
  generation INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  version INTEGER NOT NULL,
  paused INTEGER NOT NULL,
  aside INTEGER NOT NULL DEFAULT 0,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed, shard)
)`,
			"CREATE TABLE " + name("dead_letters") + ` (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  shard INTEGER NOT NULL,
  key_digest TEXT NOT NULL,
  key_json TEXT NOT NULL,
  generation INTEGER NOT NULL,
  position TEXT NOT NULL,
  op TEXT NOT NULL,
  state TEXT NOT NULL,
  attempts INTEGER NOT NULL,
  collapsed INTEGER NOT NULL,
  error TEXT NOT NULL,
  first_at INTEGER NOT NULL,
  last_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed, shard, key_digest)
)`,
			"CREATE TABLE " + name("processed") + ` (
  consumer TEXT NOT NULL,
  feed TEXT NOT NULL,
  generation INTEGER NOT NULL,
  shard INTEGER NOT NULL,
  position TEXT NOT NULL,
  processed_at INTEGER NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
) WITHOUT ROWID`,
			"INSERT INTO " + name("schema_version") + " VALUES (2, " + d.Now() + ")",
		},
		Down: []string{
			"DROP TABLE " + name("processed"),
			"DROP TABLE " + name("dead_letters"),
			"DROP TABLE " + name("cursors"),
			"DELETE FROM " + name("schema_version") + " WHERE version = 2",
		},
	}
}

// letterShards adds the data shard of a dead letter's key. The dead letter follows its key to another shard of
// the consumer.
func (d Dialect) letterShards(name func(base string) string) dialect.Migration {
	return dialect.AddsColumn(name, d.Now(), 5, "data shards of dead letters", "dead_letters", "data_shard", "INTEGER")
}

// cursorFailures adds the reason why a shard of a consumer rests, for operators.
func (d Dialect) cursorFailures(name func(base string) string) dialect.Migration {
	return dialect.AddsColumn(name, d.Now(), 6, "why a consumer's shard rests", "cursors", "failure", "TEXT")
}

// InsertNew implements [dialect.Spelling].
func (Dialect) InsertNew(table string, columns, values, key []string) string {
	return dialect.InsertNew(table, columns, values, key)
}
