package values

import (
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
)

// TestStrictTablesAreDelivered: tables that are STRICT and WITHOUT ROWID are delivered like any other. ANY keeps each
// value as it is.
func TestStrictTablesAreDelivered(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		if x.Has.TypedColumns {
			return
		}
		samples := parseSamples(x.Text("values.strict_samples"))
		want := valuesTable(x, samples, x.Text("values.options_of_strict_tables"))
		f := x.Add(rowfeed.FeedSpec{Name: "every", Table: "every"})
		x.Publish(f)
		wantValues(x, f, "default", samples, want)
	})
}

// TestSimilarKeysAreDifferent: a text and a blob of the same bytes are different keys, and so are a number and its
// text. All of them are delivered (guarantee 1, hazard 24).
func TestSimilarKeysAreDifferent(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		if x.Has.TypedColumns {
			return
		}
		x.Exec(x.Statements("values.table_with_keys_that_look_alike")...)
		f := x.Add(rowfeed.FeedSpec{Name: "alike", Table: "alike"})
		x.WantDrain(f, "", `upsert {"k":1}`, `upsert {"k":"1"}`, `upsert {"k":"Fred"}`, `upsert {"k":"fred"}`,
			`upsert {"k":"{\"$binary\":\"/w==\"}"}`,
			`upsert {"k":{"$text64":"/g=="}}`, `upsert {"k":{"$text64":"/w=="}}`,
			`upsert {"k":{"$binary":"MQ=="}}`, `upsert {"k":{"$binary":"/w=="}}`)
		x.WantSound(f)
	})
}

// TestIntegerKeysHoldAnyValue: a key declared INTEGER can hold any value unless it is the rowid. The table of positions
// has such a key, too.
func TestIntegerKeysHoldAnyValue(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		if x.Has.TypedColumns {
			return
		}
		for _, table := range strings.Split(x.Text("values.tables_with_integer_keys"), "\n") {
			name, _, _ := strings.Cut(table, " ")
			isRowid := name == "rowids" || name == "named"
			x.Exec("CREATE TABLE "+table, "INSERT INTO "+name+" (id) VALUES (3), (-1), (9223372036854775807)")
			want := []string{"-1", "3", "9223372036854775807"}
			if !isRowid {
				x.Exec("INSERT INTO " + name + " (id) VALUES ('abc')")
				want = append(want, `"abc"`)
			}
			f := x.Add(rowfeed.FeedSpec{Name: name, Table: name})
			var got []string
			x.Publish(f)
			// Key 3 is recorded by its changes, too.
			x.Exec("DELETE FROM "+name+" WHERE id = 3", "INSERT INTO "+name+" (id) VALUES (3)")
			x.Publish(f)
			for _, e := range x.Fetch(f, "", 100).Entries {
				got = append(got, strings.TrimSuffix(strings.TrimPrefix(string(e.Key.AppendJSON(nil)), `{"id":`), "}"))
			}
			slices.Sort(got)
			if slices.Sort(want); !slices.Equal(got, want) {
				x.Errorf("feed %s has the keys %s, want %s", name, got, want)
			}
			if rowids := x.Scalar(x.Text("values.has_rowids", "rowfeed_positions_"+name)) == 1; rowids != isRowid {
				x.Errorf("the key of the positions of feed %s is the rowid: %t", name, rowids)
			}
			x.WantSound(f)
		}
	})
}

// TestDriverThatInventsTimesIsRefused: a driver setting turns texts that look like times into times, which loses text.
// A fetch fails, and the error names the setting.
func TestDriverThatInventsTimesIsRefused(t *testing.T) {
	suite.Each(t, func(x *suite.Env) {
		setting := x.Text("values.setting_that_invents_times")
		if setting == "" {
			return
		}
		x.Exec("CREATE TABLE d (id INTEGER PRIMARY KEY, at DATETIME)",
			"INSERT INTO d VALUES (1, '2026-01-02 03:04:05')")
		f := x.Add(rowfeed.FeedSpec{Name: "d", Table: "d"})
		x.WantDrain(f, "", `upsert {"id":1,"at":"2026-01-02 03:04:05"}`)
		name, _, _ := strings.Cut(setting, "=")
		_, err := feedThrough(x, "d", setting).Fetch(x.Ctx, rowfeed.Request{})
		if err == nil || !strings.Contains(err.Error(), name) {
			x.Errorf("fetch failed with %v, want an error that names %s", err, name)
		}
	})
}
