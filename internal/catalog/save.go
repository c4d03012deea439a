package catalog

import (
	"encoding/json"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/store"
)

// SaveOptions is the statement that writes the options of a record.
func (r *FeedRecord) SaveOptions(s *store.Store) dialect.Built {
	return s.Statement(statements, "save_options").With(dialect.Args{"options": r.OptionsText(), "name": r.Name})
}

// Save is the statement that writes a record. It is an UPDATE if the name has a row, since a dropped feed keeps its
// generation there, and otherwise an INSERT. If the feed's table is in the schema of rowfeed's tables, the schema is
// stored as an empty text. So a copied or renamed schema follows its own table.
func (r *FeedRecord) Save(s *store.Store, exists bool) dialect.Built {
	key, _ := json.Marshal(r.Key) // strings and bools only
	var columns any
	if r.Columns != nil {
		text, _ := json.Marshal(r.Columns)
		columns = string(text)
	}
	schema := store.OrNull(r.Source.Schema)
	if schema == s.Names.Schema {
		schema = ""
	}
	name := "insert"
	if exists {
		name = "replace"
	}
	return s.Statement(statements, name).With(dialect.Args{"name": r.Name, "mode": r.Mode,
		"capture": string(r.Capture), "state": r.State, "generation": r.Generation, "source_schema": schema,
		"source_table": r.Source.Name, "key_columns": string(key), "delivered_columns": columns,
		"options": r.OptionsText(), "data_shards": int64(r.DataShards), "shard_column": store.OrNull(r.ShardColumn),
		"tombstones_seconds": int64(r.Tombstones / time.Second), "database_identity": store.OrNull(r.Identity)})
}
