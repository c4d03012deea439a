package postgres

import "github.com/rowfeed/rowfeed/dialect"

// consumerTables makes the tables that consumers write. Names, digests and positions are compared byte by byte,
// whatever the database's collation. A cursor's row is updated with every page; a low fill factor keeps space
// for its next version in the same page of the table.
func (d Dialect) consumerTables(name func(base string) string) dialect.Migration {
	return dialect.Migration{
		Version: 2,
		Title:   "cursors, dead letters, processed ids",
		Up: []string{
			"CREATE TABLE " + name("cursors") + ` (
  consumer text COLLATE "C" NOT NULL,
  feed text COLLATE "C" NOT NULL,
  shard bigint NOT NULL,
  shard_count integer NOT NULL,
  value text COLLATE "C" NOT NULL,
  generation bigint NOT NULL,
  epoch bigint NOT NULL,
  version bigint NOT NULL,
  paused smallint NOT NULL,
  aside bigint NOT NULL DEFAULT 0,
  updated_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, shard)
) WITH (fillfactor = 10)`,
			"CREATE TABLE " + name("dead_letters") + ` (
  consumer text COLLATE "C" NOT NULL,
  feed text COLLATE "C" NOT NULL,
  shard bigint NOT NULL,
  key_digest text COLLATE "C" NOT NULL,
  key_json text NOT NULL,
  generation bigint NOT NULL,
  position text COLLATE "C" NOT NULL,
  op text COLLATE "C" NOT NULL,
  state text COLLATE "C" NOT NULL,
  attempts bigint NOT NULL,
  collapsed bigint NOT NULL,
  error text NOT NULL,
  first_at bigint NOT NULL,
  last_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, shard, key_digest)
)`,
			"CREATE TABLE " + name("processed") + ` (
  consumer text COLLATE "C" NOT NULL,
  feed text COLLATE "C" NOT NULL,
  generation bigint NOT NULL,
  shard bigint NOT NULL,
  position text COLLATE "C" NOT NULL,
  processed_at bigint NOT NULL,
  PRIMARY KEY (consumer, feed, generation, shard, position)
)`,
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
	return dialect.AddsColumn(name, d.Now(), 5, "data shards of dead letters", "dead_letters", "data_shard", "bigint")
}

// cursorFailures adds the reason why a shard of a consumer rests, for operators.
func (d Dialect) cursorFailures(name func(base string) string) dialect.Migration {
	return dialect.AddsColumn(name, d.Now(), 6, "why a consumer's shard rests", "cursors", "failure", "text")
}

// InsertNew implements [dialect.Spelling].
func (Dialect) InsertNew(table string, columns, values, key []string) string {
	return dialect.InsertNew(table, columns, values, key)
}
