package catalog

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/internal/store"
)

// OptionsSQL is the statement that writes the options of a record.
func (r *FeedRecord) OptionsSQL(b *dialect.Builder, table string) string {
	return "UPDATE " + table + " SET options = " + b.Arg(r.OptionsText()) + " WHERE name = " + b.Arg(r.Name)
}

// Save is the statement that writes a record. It is an UPDATE if the name has a row, since a dropped feed keeps its
// generation there, and otherwise an INSERT. If the feed's table is in the schema of rowfeed's tables (own), the schema
// is stored as an empty text. So a copied or renamed schema follows its own table.
func (r *FeedRecord) Save(b *dialect.Builder, table, own string, exists bool, createdAt string) string {
	key, _ := json.Marshal(r.Key) // strings and bools only
	var columns any
	if r.Columns != nil {
		text, _ := json.Marshal(r.Columns)
		columns = string(text)
	}
	var schema any
	if r.Source.Schema != "" {
		schema = r.Source.Schema
		if schema == own {
			schema = ""
		}
	}
	var shardColumn any
	if r.ShardColumn != "" {
		shardColumn = r.ShardColumn
	}
	fields := []struct {
		name  string
		value any
	}{
		{"mode", r.Mode}, {"capture", string(r.Capture)}, {"state", r.State}, {"generation", r.Generation},
		{"source_schema", schema}, {"source_table", r.Source.Name}, {"key_columns", string(key)},
		{"delivered_columns", columns}, {"options", r.OptionsText()}, {"data_shards", int64(r.DataShards)},
		{"shard_column", shardColumn},
		{"tombstones_seconds", int64(r.Tombstones / time.Second)}, {"tombstones_below", int64(0)},
		{"database_identity", store.OrNull(r.Identity)},
	}
	if exists {
		var sets []string
		for _, f := range fields {
			sets = append(sets, f.name+" = "+b.Arg(f.value))
		}
		return "UPDATE " + table + " SET " + strings.Join(sets, ", ") + ", fill_after = NULL, " +
			store.ClearFailure + ", " +
			"created_at = " + createdAt + " WHERE name = " + b.Arg(r.Name)
	}
	names, values := []string{"name"}, []string{b.Arg(r.Name)}
	for _, f := range fields {
		names, values = append(names, f.name), append(values, b.Arg(f.value))
	}
	return "INSERT INTO " + table + " (" + strings.Join(names, ", ") + ", created_at)\nVALUES (" +
		strings.Join(values, ", ") + ", " + createdAt + ")"
}
