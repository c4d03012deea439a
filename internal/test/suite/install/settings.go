package install

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// surroundings are settings that an administrator or an application may have made: of the database on PostgreSQL,
// of the server on MariaDB and MySQL, of every connection on SQLite. All sessions have them, the writers' too.
type surroundings []string

// make makes them for sessions that begin from now on, until undo is called.
func (s surroundings) make(x *suite.Env) (undo func()) {
	x.Helper()
	var takeBack func()
	switch x.Family() {
	case "postgres":
		for _, setting := range s {
			x.DB.Exec(x.T, "ALTER DATABASE "+x.DB.Name+" SET "+setting)
		}
		takeBack = func() { x.DB.Exec(x.T, "ALTER DATABASE "+x.DB.Name+" RESET ALL") }
	case "mysql":
		var back []string
		for _, setting := range s {
			name, _, _ := strings.Cut(setting, " = ")
			var value string
			if err := x.DB.Admin().QueryRowContext(x.Ctx, "SELECT @@GLOBAL."+name).Scan(&value); err != nil {
				x.Fatal(err)
			}
			if strings.Trim(value, "-0123456789") != "" || value == "" {
				value = "'" + value + "'"
			}
			back = append(back, "SET GLOBAL "+name+" = "+value)
			x.DB.Exec(x.T, "SET GLOBAL "+setting)
		}
		takeBack = func() {
			for _, set := range back {
				x.DB.Exec(x.T, set)
			}
		}
	default:
		x.DB.Admin().SetMaxOpenConns(1)
		for _, setting := range s {
			x.DB.Exec(x.T, "PRAGMA "+setting)
		}
		return func() {}
	}
	x.DB.Reconnect() // the sessions of before do not have them
	x.Cleanup(takeBack)
	return func() { takeBack(); x.DB.Reconnect() }
}

// reopen opens rowfeed on new sessions: on a pool as a program may have it, or on one that rowfeed's own commands open.
func reopen(x *suite.Env, s surroundings, own bool) {
	x.Helper()
	if own {
		y := suite.OpenEnv(x.T, x.DB, nil)
		x.Pool, x.RF = y.Pool, y.RF
		return
	}
	var params []string
	if x.Family() == "sqlite" {
		for _, setting := range s {
			name, value, _ := strings.Cut(setting, " = ")
			params = append(params, "_pragma="+name+"("+value+")")
		}
	}
	x.Pool = x.DB.OpenTapped(x.T, testdb.Hooks{}, params...)
	rf, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, nil)
	if err != nil {
		x.Fatal(err)
	}
	x.RF = rf
}

// settingsTables are the names of the tables whose feeds are observed, and the statements that create them. Their keys
// have every type whose values, texts or comparisons depend on a setting of the database. With column capture, they
// have those of these types whose equal values have equal text.
func settingsTables(x *suite.Env) (names []string, statements []string) {
	names = []string{"s", "numbered"}
	if x.Capture == feedtype.CaptureColumn {
		return names, x.Statements("install.settings_tables_exact")
	}
	return names, x.Statements("install.settings_tables")
}

// settingsWrites are what writers do with these tables, in three parts. The first row is found by LIKE, since in some
// modes MySQL finds no code = 'a': it reads blanks behind the value.
func settingsWrites(x *suite.Env) [3][]string {
	first := x.Text("install.first_setting_row")
	return [3][]string{{
		x.Text("install.insert_settings"),
		"INSERT INTO numbered (k, v) VALUES ('a', '1'), ('b', '2'), ('c', '3'), ('d', '4'), ('e', '5')",
	}, {
		"UPDATE s SET v = 'changed' WHERE " + first,
		x.Text("install.change_settings"),
		"DELETE FROM numbered WHERE id = 2",
		"INSERT INTO numbered (k, v) VALUES ('f', '6')",
		"UPDATE numbered SET id = 12 WHERE id = 3",
		"UPDATE numbered SET v = 'w' WHERE id = 4",
	}, {
		"DELETE FROM s WHERE " + first,
		"UPDATE numbered SET v = 'u' WHERE id = 1",
	}}
}

// life is what a reader and an operator see of two feeds from their beginning, under settings, and afterwards without.
func life(x *suite.Env, s surroundings, own bool) (told []string) {
	x.Helper()
	tell := func(format string, args ...any) {
		told = append(told, strings.ReplaceAll(fmt.Sprintf(format, args...), x.DB.Name+".", ""))
	}
	if x.Family() == "postgres" {
		x.Exec("CREATE SCHEMA types", "CREATE TYPE types.mood AS ENUM ('sad', 'happy')", "CREATE SEQUENCE numbers",
			"CREATE DOMAIN types.small AS bigint CHECK (VALUE < 1000)", "CREATE DOMAIN types.mail AS text")
		if x.Scalar("SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'") == 1 {
			x.Exec("CREATE EXTENSION citext SCHEMA types", "DROP DOMAIN types.mail",
				"CREATE DOMAIN types.mail AS types.citext")
		}
	}
	names, tables := settingsTables(x)
	x.Exec(tables...)
	writes := settingsWrites(x)
	x.Exec(writes[0]...)
	undo := s.make(x)
	reopen(x, s, own)
	x.Migrate()
	cursors := make([]rowfeed.Cursor, len(names))
	const shards = 4
	look := func(what string, feeds []*rowfeed.Feed) {
		x.Helper()
		for i, f := range feeds {
			var lines []string
			lines, cursors[i] = x.Drain(f, cursors[i])
			tell("%s, %s: %q", what, f.Name(), lines)
			info, err := f.Info(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			types := fmt.Sprint(info.Key, info.Columns)
			// PostgreSQL may quote the names of users' types.
			types = regexp.MustCompile(`"?types"?\."?(mail|mood|small)"?`).ReplaceAllString(types, "types.$1")
			tell("%s, %s: %s", what, f.Name(), types)
			for shard := range shards {
				entries, _ := x.Part(f, rowfeed.One(shard), "", 100)
				for _, e := range entries {
					tell("%s, %s, shard %d: %s", what, f.Name(), shard, suite.Line(e))
				}
			}
			findings, err := f.Admin().Check(x.Ctx)
			for _, finding := range findings {
				key := ""
				if finding.Key != nil {
					key = string(finding.Key.AppendJSON(nil))
				}
				tell("%s, %s: %s %s", what, f.Name(), finding.Problem, key)
			}
			problems, verified := f.Admin().Verify(x.Ctx)
			n, repaired := f.Admin().Repair(x.Ctx)
			tell("%s, %s: checked %v, verified %q %v, repaired %d %v", what, f.Name(), err, problems, verified, n,
				repaired)
		}
	}
	republish := func(what string, f *rowfeed.Feed) {
		x.Helper()
		var keys []rowfeed.Key
		for _, e := range x.Fetch(f, "", 0).Entries {
			key, err := f.ParseKey(string(e.Key.AppendJSON(nil)))
			if err != nil {
				x.Fatal(err)
			}
			keys = append(keys, key)
		}
		unknown, err := f.Admin().UnknownKeys(x.Ctx, keys...)
		tell("%s, %s: of %d keys unknown are %v %v", what, f.Name(), len(keys), unknown, err)
		err = f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Republish(x.Ctx, tx, keys...) })
		tell("%s, %s: republished, %v", what, f.Name(), err)
		n, err := f.Admin().RepublishWhere(x.Ctx, "", 1, nil)
		tell("%s, %s: republished %d, %v", what, f.Name(), n, err)
	}
	var feeds []*rowfeed.Feed
	for _, name := range names {
		feeds = append(feeds, x.Add(rowfeed.FeedSpec{Name: name, Table: name, DataShards: shards}))
	}
	look("added", feeds)
	x.Exec(writes[1]...)
	look("written", feeds)
	for _, f := range feeds {
		republish("read", f)
	}
	look("republished", feeds)
	for i, f := range feeds {
		x.Exec(x.Text("install.drop_capture_trigger", names[i]))
		mended, err := f.Admin().Upgrade(x.Ctx)
		tell("%s: upgraded, %q %v", f.Name(), mended, err)
	}
	undo()
	reopen(x, nil, own)
	for i := range feeds {
		f, err := x.RF.Feed(x.Ctx, names[i])
		if err != nil {
			x.Fatal(err)
		}
		feeds[i] = f
		republish("without", f)
		cursors[i] = ""
	}
	look("without", feeds)
	x.Exec(writes[2]...)
	look("at last", feeds)
	return told
}

// settingsThatMatter could each change what triggers record, or what rowfeed's sessions write, compare or read.
func settingsThatMatter(e testdb.Engine) map[string]surroundings {
	switch e.Family {
	case "postgres":
		return map[string]surroundings{
			"formats": {
				"TimeZone = 'America/New_York'",
				"DateStyle = 'German, DMY'",
				"IntervalStyle = 'sql_standard'",
				"extra_float_digits = -12",
				"bytea_output = 'escape'",
				"xmlbinary = 'hex'",
				"xmloption = 'document'",
				"lc_numeric = 'C'",
				"lc_monetary = 'C'",
			},
			"parsing": {
				"standard_conforming_strings = off",
				"escape_string_warning = on",
				"backslash_quote = off",
				"array_nulls = off",
				"transform_null_equals = on",
				"client_encoding = 'UTF8'",
			},
			"quote_all_identifiers": {"quote_all_identifiers = on", "search_path = public, types"},
			"transactions": {
				"default_transaction_isolation = 'serializable'",
				"default_transaction_deferrable = on",
				"row_security = off",
				"check_function_bodies = off",
				"default_table_access_method = 'heap'",
				"default_tablespace = 'pg_default'",
			},
			"use_column": {
				"plpgsql.variable_conflict = 'use_column'",
				"plpgsql.extra_errors = 'all'",
				"plan_cache_mode = 'force_generic_plan'",
			},
			"use_variable": {
				"plpgsql.variable_conflict = 'use_variable'",
				"plpgsql.extra_warnings = 'all'",
				"search_path = public, types",
			},
		}
	case "mysql":
		modes := func(names ...string) surroundings {
			return surroundings{"sql_mode = '" + strings.Join(names, ",") + "'"}
		}
		parsing := []string{
			"ANSI_QUOTES",
			"PIPES_AS_CONCAT",
			"IGNORE_SPACE",
			"REAL_AS_FLOAT",
			"NO_BACKSLASH_ESCAPES",
			"HIGH_NOT_PRECEDENCE",
			"NO_UNSIGNED_SUBTRACTION",
			"NO_AUTO_VALUE_ON_ZERO",
		}
		strict := []string{
			"ONLY_FULL_GROUP_BY",
			"STRICT_ALL_TABLES",
			"NO_ZERO_DATE",
			"NO_ZERO_IN_DATE",
			"ERROR_FOR_DIVISION_BY_ZERO",
		}
		all := map[string]surroundings{
			"parsing": modes(parsing...),
			"strict":  modes(strict...),
			"lax":     modes("ALLOW_INVALID_DATES"),
			"limits": {
				"sql_select_limit = 1",
				"group_concat_max_len = 4",
				"div_precision_increment = 0",
				"foreign_key_checks = 0",
				"unique_checks = 0",
				"explicit_defaults_for_timestamp = 0",
				"sql_auto_is_null = 1",
			},
			"connection": {
				"character_set_client = latin1",
				"character_set_connection = latin1",
				"character_set_results = latin1",
				"time_zone = '+05:45'",
			},
		}
		if e == testdb.MariaDB {
			all["parsing"] = modes(append(parsing, "SIMULTANEOUS_ASSIGNMENT")...)
			all["strict"] = modes(append(strict, "TIME_ROUND_FRACTIONAL")...)
			all["lax"] = append(modes(), "old_mode = 'NO_DUP_KEY_WARNINGS_WITH_IGNORE,ZERO_DATE_TIME_CAST'",
				"optimizer_switch = 'derived_merge=off,condition_pushdown_for_derived=off,split_materialized=off'")
			all["MSSQL"] = modes("MSSQL")
			all["PAD_CHAR_TO_FULL_LENGTH"] = modes("PAD_CHAR_TO_FULL_LENGTH")
		} else {
			all["lax"] = append(modes("TIME_TRUNCATE_FRACTIONAL"), "sql_require_primary_key = 1",
				"optimizer_switch = 'derived_merge=off,derived_condition_pushdown=off,prefer_ordering_index=off'")
		}
		return all
	}
	return map[string]surroundings{
		"recursive_triggers":        {"recursive_triggers = 1"},
		"case_sensitive_like":       {"case_sensitive_like = 1"},
		"foreign_keys":              {"foreign_keys = 1", "defer_foreign_keys = 1"},
		"legacy_alter_table":        {"legacy_alter_table = 1"},
		"trusted_schema":            {"trusted_schema = 0"},
		"reverse_unordered_selects": {"reverse_unordered_selects = 1"},
		"ignore_check_constraints":  {"ignore_check_constraints = 1"},
		"automatic_index":           {"automatic_index = 0"},
		"encoding":                  {"encoding = 'UTF-16'"},
		"cell_size_check":           {"cell_size_check = 1", "count_changes = 1", "empty_result_callbacks = 1"},
	}
}

// settingsRefused are settings under which rowfeed's sessions cannot work. Pools that its commands open do not have
// them, and others are refused.
func settingsRefused(e testdb.Engine) map[string]surroundings {
	if e.Family != "mysql" {
		return nil
	}
	all := map[string]surroundings{"max_join_size": {"max_join_size = 1"}, "sql_safe_updates": {"sql_safe_updates = 1"}}
	if e == testdb.MySQL {
		all["PAD_CHAR_TO_FULL_LENGTH"] = surroundings{"sql_mode = 'PAD_CHAR_TO_FULL_LENGTH'"}
		return all
	}
	all["EMPTY_STRING_IS_NULL"] = surroundings{"sql_mode = 'STRICT_ALL_TABLES,EMPTY_STRING_IS_NULL'"}
	all["ORACLE"] = surroundings{"sql_mode = 'ORACLE'"}
	return all
}

// TestUnsafeSessionSettingsAreRefused (V13): in some modes, an empty key, or one with blanks, would become another key.
// On a pool whose sessions have such a mode, every operation is refused by name and changes nothing.
func TestUnsafeSessionSettingsAreRefused(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		for name, s := range settingsRefused(e) {
			if !strings.HasPrefix(s[0], "sql_mode") {
				continue // the server itself refuses
			}
			x := suite.NewEnv(t, e, nil)
			x.Migrate()
			x.AddKV()
			x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
			before := x.DB.Dump(t)
			_, mode, _ := strings.Cut(s[0], " = ")
			pool := x.DB.OpenTapped(t, testdb.Hooks{}, "sql_mode="+url.QueryEscape(mode))
			rf, err := rowfeed.Open(x.Ctx, pool, x.Dialect, nil)
			if err != nil {
				t.Fatal(err)
			}
			refused := func(doing string, err error) {
				t.Helper()
				if err == nil || !strings.Contains(err.Error(), name) ||
					!strings.Contains(err.Error(), "open rowfeed's pool") {
					t.Errorf("%s under %s: %v", doing, name, err)
				}
			}
			_, err = rf.AddFeed(x.Ctx, rowfeed.FeedSpec{Name: "other", Table: "kv"}, nil)
			refused("feed add", err)
			f, err := rf.Feed(x.Ctx, "kv")
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.Publish(x.Ctx)
			refused("publish", err)
			_, err = f.Fetch(x.Ctx, rowfeed.Request{})
			refused("fetch", err)
			_, err = f.Admin().Upgrade(x.Ctx)
			refused("feed upgrade", err)
			if after := x.DB.Dump(t); after != before {
				t.Errorf("changed:\n%s\nfrom:\n%s", after, before)
			}
		}
	})
}

// TestSessionSettingsChangeNothing (V6, V13): under any settings of the sessions of writers and of rowfeed, the
// entries, their keys, and the results of check and upgrade are the same as without. They stay the same after the
// settings are gone.
func TestSessionSettingsChangeNothing(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		for _, capture := range suite.Captures {
			t.Run(string(capture), func(t *testing.T) {
				fresh := func(t *testing.T) *suite.Env {
					x := suite.NewEnv(t, e, nil)
					x.Capture = capture
					return x
				}
				want := life(fresh(t), nil, false)
				all, refused := settingsThatMatter(e), settingsRefused(e)
				maps.Copy(all, refused)
				for _, name := range slices.Sorted(maps.Keys(all)) {
					t.Run(name, func(t *testing.T) {
						got := life(fresh(t), all[name], refused[name] != nil)
						for i, line := range want {
							if i >= len(got) || got[i] != line {
								t.Errorf("under %q:\n%s\nwant:\n%s", all[name],
									strings.Join(got[min(i, len(got)):min(i+1, len(got))], ""), line)
							}
						}
					})
				}
			})
		}
	})
}
