package shard

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// shardVector is one of testdata/shards.json.
type shardVector struct {
	Name   string
	Kinds  []feedtype.Kind
	Key    json.RawMessage
	Text   string
	Shards map[string]int
}

// members are the members of a JSON object, in its order: names and values by turns.
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

// declare is a key column for a value of a kind; empty where the database has none.
func declare(x *suite.Env, kind feedtype.Kind, value string) string {
	beyond := strings.HasPrefix(value, "9223372036854775808") || strings.HasPrefix(value, "18446744073709551615")
	switch {
	case kind == feedtype.Integer && beyond:
		return map[string]string{"postgres": "numeric(20)", "mysql": "BIGINT UNSIGNED"}[x.Family()]
	case len(value) == 38 && strings.Count(value, "-") == 4 && x.Engine == testdb.MariaDB: // with its quotes
		return "UUID"
	case len(value) == 38 && strings.Count(value, "-") == 4 && x.Family() == "postgres":
		return "uuid"
	}
	return map[string]map[feedtype.Kind]string{
		"sqlite": {feedtype.Integer: "INTEGER", feedtype.Text: "TEXT", feedtype.Decimal: "TEXT", feedtype.Date: "TEXT", feedtype.Time: "TEXT",
			feedtype.Timestamp: "TEXT", feedtype.TimestampTZ: "TEXT", feedtype.Binary: "BLOB", feedtype.Float64: "REAL", feedtype.Dynamic: "ANY"},
		"postgres": {feedtype.Integer: "bigint", feedtype.Text: "text", feedtype.Decimal: "numeric(20,4)", feedtype.Boolean: "boolean", feedtype.Date: "date",
			feedtype.Time: "time", feedtype.Timestamp: "timestamp", feedtype.TimestampTZ: "timestamptz", feedtype.Binary: "bytea", feedtype.Float64: "float8", feedtype.JSON: "jsonb"},
		"mysql": {feedtype.Integer: "BIGINT", feedtype.Text: "VARCHAR(200) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", feedtype.Decimal: "DECIMAL(20,4)",
			feedtype.Date: "DATE", feedtype.Time: "TIME", feedtype.Timestamp: "DATETIME", feedtype.Binary: "VARBINARY(100)", feedtype.Float64: "DOUBLE"},
	}[x.Family()][kind]
}

// literal is a value of the vectors as SQL.
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
		return x.By(map[string]string{"postgres": fmt.Sprintf(`'\x%x'`, data), "sqlite": fmt.Sprintf("x'%x'", data), "mysql": fmt.Sprintf("x'%x'", data)})
	case kind == feedtype.JSON || !isText:
		if kind == feedtype.JSON {
			return x.Dialect.Literal(string(value))
		}
		return string(value)
	case kind == feedtype.Timestamp && x.Family() == "mysql":
		text = strings.Replace(text, "T", " ", 1)
	}
	return x.Dialect.Literal(text)
}

// TestShardVectorsInTables (M18, H24): keys written into tables of the types that
// have them get the shards that testdata/shards.json says; what JSON shows of a key is
// enough to compute it, and MySQL's own CRC32 of the key is, too.
func TestShardVectorsInTables(t *testing.T) {
	testdb.Quick(t)
	data, err := os.ReadFile("../../../testdata/shards.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors []shardVector
	if err := json.Unmarshal(data, &vectors); err != nil {
		t.Fatal(err)
	}
	seen, families := map[string]bool{}, map[string]bool{}
	suite.Each(t, func(x *suite.Env) {
		families[x.Family()] = true
		tables := map[string][]shardVector{} // by what declares the key
		var order []string
		for _, v := range vectors {
			names, values := members(x.T, v.Key)
			columns, whole := make([]string, len(names)), true
			for i, name := range names {
				decl := declare(x, v.Kinds[i], string(values[i]))
				columns[i], whole = name+" "+decl+" NOT NULL", whole && decl != ""
			}
			if !whole {
				continue
			}
			key := strings.Join(columns, ", ") + ", PRIMARY KEY (" + strings.Join(names, ", ") + ")"
			if tables[key] == nil {
				order = append(order, key)
			}
			tables[key] = append(tables[key], v)
			seen[v.Name] = true
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
			if names, _ := members(x.T, tables[key][0].Key); x.Family() == "mysql" && tables[key][0].Kinds[0] != feedtype.Binary {
				if wrong := x.Scalar("SELECT count(*) FROM " + name + " t JOIN rowfeed_positions_" + name + " p USING (" + strings.Join(names, ", ") +
					") WHERE p.shard <> CRC32(CONCAT_WS(CHAR(31), " + "t." + strings.Join(names, ", t.") + ")) % 4096"); wrong > 0 && !strings.Contains(key, "DATETIME") && !strings.Contains(key, "DOUBLE") { // which it writes otherwise
					x.Errorf("%s: CRC32 gives %d other shards", key, wrong)
				}
			}
		}
	})
	for _, v := range vectors {
		if !seen[v.Name] && len(families) == 3 {
			t.Errorf("no database had the key of %q", v.Name)
		}
	}
}
