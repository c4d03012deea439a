package shard

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// shardVector is a vector of testdata/shards.json.
type shardVector struct {
	Name   string
	Kinds  []feedtype.Kind
	Key    json.RawMessage
	Text   string
	Shards map[string]int
}

// members returns the names and values of a JSON object in their order.
func members(t *testing.T, object []byte) (names []string, values []json.RawMessage) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(object))
	_, _ = d.Token()
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			t.Fatal(err)
		}
		names, values = append(names, name.(string)), append(values, value)
	}
	return names, values
}

// declare returns the type of a key column for a value of a kind, or "" if the database has no such type.
func declare(t *testing.T, has *fixture.Fixture, kind feedtype.Kind, value string) string {
	t.Helper()
	beyond := strings.HasPrefix(value, "9223372036854775808") || strings.HasPrefix(value, "18446744073709551615")
	switch {
	case kind == feedtype.Integer && beyond:
		return has.Text(t, "shard.type_unsigned")
	case kind == feedtype.Text && len(value) == 38 && strings.Count(value, "-") == 4: // with its quotes
		return has.Text(t, "shard.type_uuid")
	}
	return has.Text(t, "shard.type_"+string(kind))
}

// columnsOf returns the declarations of the key's columns, or nil if the database does not have their types.
func columnsOf(t *testing.T, has *fixture.Fixture, v shardVector) (columns []string) {
	t.Helper()
	names, values := members(t, v.Key)
	for i, name := range names {
		decl := declare(t, has, v.Kinds[i], string(values[i]))
		if decl == "" {
			return nil
		}
		columns = append(columns, name+" "+decl+" NOT NULL")
	}
	return columns
}

// literal returns a value of the vectors as SQL.
func literal(x *suite.Env, kind feedtype.Kind, value json.RawMessage) string {
	x.Helper()
	var text string
	isText := json.Unmarshal(value, &text) == nil
	if kind == feedtype.Dynamic {
		var typed struct {
			Binary []byte `json:"$binary"`
		}
		if err := json.Unmarshal(value, &typed); err != nil {
			x.Fatal(err)
		}
		return fmt.Sprintf("x'%x'", typed.Binary)
	}
	switch {
	case kind == feedtype.Binary:
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			x.Fatal(err)
		}
		return x.Text("shard.bytes", data)
	case kind == feedtype.JSON || !isText:
		if kind == feedtype.JSON {
			return x.Dialect.Literal(string(value))
		}
		return string(value)
	case kind == feedtype.Timestamp && !x.Has.ISOTimestamps:
		text = strings.Replace(text, "T", " ", 1)
	}
	return x.Dialect.Literal(text)
}

// TestTablesMatchShardVectors (M18, H24): keys in tables of the types that a database has get the shards that
// testdata/shards.json says. The JSON of a key is enough to compute its shard, and so is MySQL's own CRC32.
func TestTablesMatchShardVectors(t *testing.T) {
	testdb.Quick(t)
	data, err := os.ReadFile("../../../testdata/shards.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []shardVector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	databases := append([]testdb.Engine{testdb.SQLite}, testdb.Servers...)
	for _, v := range vectors {
		has := func(e testdb.Engine) bool { return columnsOf(t, fixture.Of(e), v) != nil }
		if !slices.ContainsFunc(databases, has) {
			t.Errorf("no database has types for the key of the vector %q", v.Name)
		}
	}
	suite.Each(t, func(x *suite.Env) {
		tables := map[string][]shardVector{} // by the declaration of the key
		var order []string
		for _, v := range vectors {
			columns := columnsOf(x.T, x.Has, v)
			if columns == nil {
				continue
			}
			names, _ := members(x.T, v.Key)
			key := strings.Join(columns, ", ") + ", PRIMARY KEY (" + strings.Join(names, ", ") + ")"
			if tables[key] == nil {
				order = append(order, key)
			}
			tables[key] = append(tables[key], v)
		}
		for i, key := range order {
			name := fmt.Sprint("vectors", i)
			x.Exec("CREATE TABLE " + name + " (" + key + ")")
			want := map[string]int{}
			for _, v := range tables[key] {
				names, values := members(x.T, v.Key)
				cells := make([]string, len(names))
				for i := range names {
					cells[i] = literal(x, v.Kinds[i], values[i])
				}
				x.Exec("INSERT INTO " + name + " VALUES (" + strings.Join(cells, ", ") + ")")
				want[v.Text] = v.Shards["4096"]
			}
			f := x.Add(rowfeed.FeedSpec{Name: name, Table: name, DataShards: 4096})
			x.Publish(f)
			entries, _ := x.Part(f, rowfeed.Shards{}, "", 100)
			if len(entries) != len(tables[key]) {
				x.Fatalf("%s: %d entries of %d", key, len(entries), len(tables[key]))
			}
			for _, e := range entries {
				names, values := members(x.T, e.Key.AppendJSON(nil))
				texts := make([]string, len(names))
				for i, v := range values {
					if json.Unmarshal(v, &texts[i]) != nil {
						texts[i] = string(v)
					}
				}
				shard, ok := want[strings.Join(texts, "\x1f")]
				if !ok || shard != e.Shard || feedtype.ShardOf(e.Key, 4096) != shard {
					x.Errorf("%s: %s is in shard %d, want %d (%v)", key, e.Key.AppendJSON(nil), e.Shard, shard, ok)
				}
			}
			if x.Has.CRC32 && tables[key][0].Kinds[0] != feedtype.Binary &&
				!strings.Contains(key, "DATETIME") && !strings.Contains(key, "DOUBLE") { // whose texts differ from JSON
				names, _ := members(x.T, tables[key][0].Key)
				wrong := x.Scalar(x.Text("shard.count_other_crc32", name, strings.Join(names, ", "),
					"t."+strings.Join(names, ", t.")))
				if wrong > 0 {
					x.Errorf("%s: CRC32 gives %d other shards", key, wrong)
				}
			}
		}
	})
}
