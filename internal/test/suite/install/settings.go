package install

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/fixture"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// settings are settings that an administrator or an application may have made. On PostgreSQL the database has them, on
// MariaDB and MySQL the server, on SQLite each connection. All sessions have them, also those of writers.
type settings []string

// settingsOf returns the groups of settings in a text of the fixture, by their names.
func settingsOf(t *testing.T, has *fixture.Fixture, text string) map[string]settings {
	t.Helper()
	groups := map[string]settings{}
	for line := range strings.Lines(has.Text(t, text)) {
		group, setting, _ := strings.Cut(strings.TrimSpace(line), " -> ")
		groups[group] = append(groups[group], setting)
	}
	return groups
}

// make gives the settings to all sessions that begin before undo is called.
func (s settings) make(x *suite.Env) (undo func()) {
	x.Helper()
	if x.Has.ConnectionSettings {
		x.DB.Admin().SetMaxOpenConns(1)
		for _, setting := range s {
			x.DB.Exec(x.T, x.Text("install.set", setting))
		}
		return func() {}
	}
	var former []string
	for _, setting := range s {
		name, _, _ := strings.Cut(setting, " = ")
		former = append(former, x.List(x.Text("install.set_former", x.DB.Name, name))...)
		x.DB.Exec(x.T, x.Text("install.set", setting, x.DB.Name))
	}
	restore := func() {
		for _, statement := range former {
			x.DB.Exec(x.T, statement)
		}
	}
	x.DB.Reconnect() // open sessions do not have the settings
	x.Cleanup(restore)
	return func() { restore(); x.DB.Reconnect() }
}

// reopen opens rowfeed on new sessions: on a pool of an application, or on one that rowfeed's commands would open.
func reopen(x *suite.Env, s settings, ofCommands bool) {
	x.Helper()
	if ofCommands {
		y := suite.OpenEnv(x.T, x.DB, nil)
		x.Pool, x.RF = y.Pool, y.RF
		return
	}
	var params []string
	if x.Has.ConnectionSettings {
		for _, setting := range s {
			params = append(params, parameter(x, setting))
		}
	}
	x.Pool = x.DB.OpenTapped(x.T, testdb.Hooks{}, params...)
	rf, err := rowfeed.Open(x.Ctx, x.Pool, x.Dialect, nil)
	if err != nil {
		x.Fatal(err)
	}
	x.RF = rf
}

// parameter returns the parameter of a database's URL that gives a setting to all sessions of a pool.
func parameter(x *suite.Env, setting string) string {
	x.Helper()
	name, value, _ := strings.Cut(setting, " = ")
	return x.Text("install.setting_parameter", name, value)
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

// observed returns what a reader and an operator see of two feeds: from adding the feeds on with the settings, and
// afterwards without them.
func observed(x *suite.Env, s settings, own bool) (notes []string) {
	x.Helper()
	note := func(format string, args ...any) {
		notes = append(notes, strings.ReplaceAll(fmt.Sprintf(format, args...), x.DB.Name+".", ""))
	}
	x.Exec(x.Statements("install.settings_types")...)
	names, tables := settingsTables(x)
	x.Exec(tables...)
	writes := settingsWrites(x)
	x.Exec(writes[0]...)
	undo := s.make(x)
	reopen(x, s, own)
	x.Migrate()
	cursors := make([]rowfeed.Cursor, len(names))
	const shards = 4
	observe := func(what string, feeds []*rowfeed.Feed) {
		x.Helper()
		for i, f := range feeds {
			var lines []string
			lines, cursors[i] = x.Drain(f, cursors[i])
			note("%s, %s: %q", what, f.Name(), lines)
			info, err := f.Info(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			types := fmt.Sprint(info.Key, info.Columns)
			// PostgreSQL may quote the names of users' types.
			types = regexp.MustCompile(`"?types"?\."?(mail|mood|small)"?`).ReplaceAllString(types, "types.$1")
			note("%s, %s: %s", what, f.Name(), types)
			for shard := range shards {
				entries, _ := x.Part(f, rowfeed.One(shard), "", 100)
				for _, e := range entries {
					note("%s, %s, shard %d: %s", what, f.Name(), shard, suite.Line(e))
				}
			}
			findings, err := f.Admin().Check(x.Ctx)
			for _, finding := range findings {
				key := ""
				if finding.Key != nil {
					key = string(finding.Key.AppendJSON(nil))
				}
				note("%s, %s: %s %s", what, f.Name(), finding.Problem, key)
			}
			problems, verified := f.Admin().Verify(x.Ctx)
			n, repaired := f.Admin().Repair(x.Ctx)
			note("%s, %s: checked %v, verified %q %v, repaired %d %v", what, f.Name(), err, problems, verified, n,
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
		note("%s, %s: of %d keys unknown are %v %v", what, f.Name(), len(keys), unknown, err)
		err = f.InOwnTx(x.Ctx, func(tx rowfeed.Tx) error { return f.Republish(x.Ctx, tx, keys...) })
		note("%s, %s: republished, %v", what, f.Name(), err)
		n, err := f.Admin().RepublishWhere(x.Ctx, "", 1, nil)
		note("%s, %s: republished %d, %v", what, f.Name(), n, err)
	}
	var feeds []*rowfeed.Feed
	for _, name := range names {
		feeds = append(feeds, x.Add(rowfeed.FeedSpec{Name: name, Table: name, DataShards: shards}))
	}
	observe("added", feeds)
	x.Exec(writes[1]...)
	observe("written", feeds)
	for _, f := range feeds {
		republish("read", f)
	}
	observe("republished", feeds)
	for i, f := range feeds {
		x.Exec(x.Text("install.drop_capture_trigger", names[i]))
		mended, err := f.Admin().Upgrade(x.Ctx)
		note("%s: upgraded, %q %v", f.Name(), mended, err)
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
	observe("without", feeds)
	x.Exec(writes[2]...)
	observe("at last", feeds)
	return notes
}

// TestUnsafeSessionSettingsAreRefused (V13): in some modes, an empty key, or one with blanks, would become another key.
// On a pool whose sessions have such a mode, every operation is refused by name and changes nothing.
func TestUnsafeSessionSettingsAreRefused(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.InnoDB...) // the others have no such modes
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		for name, s := range settingsOf(t, fixture.Of(e), "install.refused_settings") {
			if !strings.HasPrefix(s[0], "sql_mode") {
				continue // the server itself refuses
			}
			x := suite.NewEnv(t, e, nil)
			x.Migrate()
			x.AddKV()
			x.Exec("INSERT INTO kv VALUES (1, 'a', 1)")
			before := x.DB.Dump(t)
			pool := x.DB.OpenTapped(t, testdb.Hooks{}, parameter(x, s[0]))
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
				want := observed(fresh(t), nil, false)
				all := settingsOf(t, fixture.Of(e), "install.settings")
				refused := settingsOf(t, fixture.Of(e), "install.refused_settings")
				maps.Copy(all, refused)
				for _, name := range slices.Sorted(maps.Keys(all)) {
					t.Run(name, func(t *testing.T) {
						got := observed(fresh(t), all[name], refused[name] != nil)
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
