package conformance

import (
	"database/sql"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestLifeLeavesNoTrace (M28, M48, M63): after feed drop and migrate down a schema dump
// equals the one before init, byte for byte; each of the steps can be done twice.
func TestLifeLeavesNoTrace(t *testing.T) {
	testdb.Quick(t)
	eachFresh(t, func(x *env) {
		x.exec("CREATE TABLE kv (id BIGINT NOT NULL PRIMARY KEY, k VARCHAR(100), v BIGINT)", "INSERT INTO kv VALUES (1, 'a', 0), (2, 'b', 0)")
		before := x.db.Dump(x.T)
		_, err := x.rf.Feeds(x.ctx)
		x.wantCode(err, rowfeed.NotInitialized)
		for range 2 {
			x.migrate()
		}
		fresh := x.db.Dump(x.T)
		x.add(rowfeed.FeedSpec{Name: "app", Table: "kv", Capture: feedtype.CaptureApp})
		f := x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv"})
		x.exec("DELETE FROM kv WHERE id = 2")
		x.drain(f, "")
		if err := x.rf.MigrateDown(x.ctx); !isCode(err, rowfeed.Conflict) || !strings.Contains(err.Error(), "app, kv") {
			x.Errorf("migrate down under feeds: %v", err)
		}
		for range 2 {
			for _, name := range []string{"kv", "app"} {
				if err := x.rf.DropFeed(x.ctx, name); err != nil {
					x.Fatal(err)
				}
			}
		}
		if after := x.db.Dump(x.T); after != fresh {
			x.Errorf("feed drop left something behind:\n%s\nbefore feed add:\n%s", after, fresh)
		}
		x.exec("INSERT INTO kv VALUES (3, 'c', 0)") // no trigger is left to fail
		for range 2 {
			if err := x.rf.MigrateDown(x.ctx); err != nil {
				x.Fatal(err)
			}
		}
		if after := x.db.Dump(x.T); after != before {
			x.Errorf("migrate down left something behind:\n%s\nbefore init:\n%s", after, before)
		}
	})
}

// TestDropAfterTable (M63): a feed whose table is gone says so, and can be dropped.
func TestDropAfterTable(t *testing.T) {
	eachCapture(t, func(x *env) {
		fresh := x.db.Dump(x.T)
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 0)")
		x.drain(f, "")
		x.exec("DROP TABLE kv")
		_, err := f.Fetch(x.ctx, rowfeed.Request{})
		x.wantCode(err, rowfeed.Refused)
		if status, err := f.Admin().Status(x.ctx); err != nil || len(status.Problems) == 0 {
			x.Errorf("status: %+v %v", status, err)
		}
		if err := x.rf.DropFeed(x.ctx, "kv"); err != nil {
			x.Fatal(err)
		}
		if after := x.db.Dump(x.T); after != fresh {
			x.Errorf("left behind:\n%s", after)
		}
	})
}

// TestFeedAddTwice (M28): with the same arguments nothing changes, with others nothing
// changes either and the difference is named.
func TestFeedAddTwice(t *testing.T) {
	eachCapture(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 0)")
		x.drain(f, "")
		before := x.db.Dump(x.T)
		x.add(rowfeed.FeedSpec{Name: "kv", Table: "kv", Key: []string{"id"}})
		if n := x.publish(f); n != 0 {
			x.Errorf("adding again recorded %d keys", n)
		}
		_, err := x.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv", Columns: []string{"k"}, Tombstones: time.Hour}, nil)
		x.wantCode(err, rowfeed.Conflict)
		for _, part := range []string{"columns", "tombstones", "720h0m0s", "1h0m0s"} {
			if !strings.Contains(err.Error(), part) {
				x.Errorf("%q does not name %q", err, part)
			}
		}
		if x.db.Dump(x.T) != before {
			x.Error("a refused feed add changed the schema")
		}
	})
}

// TestRefused (M4, M28, H11, H22): tables that cannot be fed are refused with the reason and the next
// step, and nothing is half-made.
func TestRefused(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		x.exec("CREATE TABLE nokey (a INT)", "CREATE TABLE nullable (a INT, b INT NOT NULL, UNIQUE (a, b))",
			"CREATE TABLE good (id BIGINT NOT NULL PRIMARY KEY, v INT)", "CREATE VIEW looks AS SELECT * FROM good")
		cases := []struct {
			spec rowfeed.FeedSpec
			code rowfeed.Code
			says string
		}{
			{rowfeed.FeedSpec{Name: "f", Table: "absent"}, rowfeed.Refused, "does not exist"},
			{rowfeed.FeedSpec{Name: "f", Table: "nokey"}, rowfeed.Refused, "no primary key"},
			{rowfeed.FeedSpec{Name: "f", Table: "nullable", Key: []string{"b", "a"}}, rowfeed.Refused, "may be NULL"},
			{rowfeed.FeedSpec{Name: "f", Table: "good", Key: []string{"v"}}, rowfeed.Refused, "no unique index"},
			{rowfeed.FeedSpec{Name: "f", Table: "good", Columns: []string{"w"}}, rowfeed.Refused, `no column "w"`},
			{rowfeed.FeedSpec{Name: "f", Table: "good", Columns: []string{"v", "v"}}, rowfeed.InvalidRequest, "twice"},
			{rowfeed.FeedSpec{Name: "f", Table: "looks"}, rowfeed.Refused, "view"},
			{rowfeed.FeedSpec{Name: "F", Table: "good"}, rowfeed.InvalidRequest, "no feed name"},
			{rowfeed.FeedSpec{Name: strings.Repeat("x", 40), Table: "good"}, rowfeed.InvalidRequest, "no feed name"},
			{rowfeed.FeedSpec{Name: "f"}, rowfeed.InvalidRequest, "name the table"},
			{rowfeed.FeedSpec{Name: "f", Table: `"good`}, rowfeed.InvalidRequest, "closing quote"},
			{rowfeed.FeedSpec{Name: "f", Table: "a.b.c"}, rowfeed.InvalidRequest, "3 parts"},
			{rowfeed.FeedSpec{Name: "f", Table: "good", Mode: "ordered"}, rowfeed.InvalidRequest, "sequence"},
			{rowfeed.FeedSpec{Name: "f", Table: "good", Capture: "luck"}, rowfeed.InvalidRequest, "trigger, app"},
		}
		for _, system := range strings.Fields(x.by(map[string]string{
			"sqlite": "sqlite_master sqlite_schema main.sqlite_master", "postgres": "pg_class pg_catalog.pg_class information_schema.sql_features information_schema.tables",
			"mysql": "mysql.user mysql.time_zone information_schema.TABLES performance_schema.threads",
		})) {
			cases = append(cases, struct {
				spec rowfeed.FeedSpec
				code rowfeed.Code
				says string
			}{rowfeed.FeedSpec{Name: "f", Table: system}, rowfeed.Refused, "the database's own tables"})
		}
		if x.family() == "postgres" {
			x.exec("CREATE UNLOGGED TABLE fleeting (id int PRIMARY KEY)",
				"CREATE TABLE parent (id int PRIMARY KEY)", "CREATE TABLE heir () INHERITS (parent)",
				"CREATE MATERIALIZED VIEW stale AS SELECT * FROM good")
			for table, says := range map[string]string{"fleeting": "unlogged", "parent": "inherit", "stale": "view"} {
				cases = append(cases, struct {
					spec rowfeed.FeedSpec
					code rowfeed.Code
					says string
				}{rowfeed.FeedSpec{Name: "f", Table: table}, rowfeed.Refused, says})
			}
		}
		before := x.db.Dump(x.T)
		for _, c := range cases {
			_, err := x.rf.AddFeed(x.ctx, c.spec, nil)
			if !isCode(err, c.code) || !strings.Contains(err.Error(), c.says) {
				x.Errorf("%+v: %v, want %s with %q", c.spec, err, c.code, c.says)
			}
		}
		if x.db.Dump(x.T) != before {
			x.Error("a refusal left something behind")
		}
		if feeds, err := x.rf.Feeds(x.ctx); err != nil || len(feeds) != 0 {
			x.Errorf("feeds: %v %v", feeds, err)
		}
	})
}

// TestDottedName (M28): a name with a dot that is no schema's is told how to be written, and
// means what it says when there is such a schema.
func TestDottedName(t *testing.T) {
	each(t, func(x *env) {
		dotted := x.dialect.Quote("odd.table")
		x.exec("CREATE TABLE " + dotted + " (id BIGINT NOT NULL PRIMARY KEY)")
		_, err := x.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "odd", Table: "odd.table"}, nil)
		x.wantCode(err, rowfeed.Refused)
		if !strings.Contains(err.Error(), `--table '"odd.table"'`) {
			x.Errorf("%v", err)
		}
		_, err = x.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "odd", Table: "odd.chair"}, nil)
		x.wantCode(err, rowfeed.Refused)
		if strings.Contains(err.Error(), "--table") {
			x.Errorf("%v", err)
		}
		f := x.add(rowfeed.FeedSpec{Name: "odd", Table: `"odd.table"`})
		x.exec("INSERT INTO " + dotted + " VALUES (1)")
		x.wantDrain(f, "", `upsert {"id":1}`)
	})
}

// TestMigrateTwoAtOnce (H20): several processes that create the tables at once take turns.
func TestMigrateTwoAtOnce(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		var group sync.WaitGroup
		for range 4 {
			x := openEnv(t, db, nil)
			group.Go(func() {
				if _, err := x.rf.Migrate(x.ctx); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		x := openEnv(t, db, nil)
		all, err := x.rf.Admin().Migrations(x.ctx)
		if err != nil || len(all) == 0 || !all[len(all)-1].Applied {
			t.Errorf("%+v %v", all, err)
		}
		if n := x.scalar("SELECT count(*) FROM rowfeed_schema_version"); n != int64(len(all)) {
			t.Errorf("%d rows in schema_version", n)
		}
	})
}

// TestMigrateUpgrades: tables of the version before are brought to the newest one;
// a table of the user's own that has the name of a new one is left alone.
func TestMigrateUpgrades(t *testing.T) {
	testdb.Quick(t)
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		x := newEnv(t, e, nil)
		x.migrate()
		fresh := x.db.Dump(t)
		if err := x.rf.MigrateDown(x.ctx); err != nil {
			x.Fatal(err)
		}
		schema, err := x.dialect.CurrentSchema(x.ctx, dialect.On(x.db.Admin()))
		if err != nil {
			x.Fatal(err)
		}
		x.exec(x.dialect.Migrations(dialect.Names{Schema: schema, Prefix: "rowfeed_"})[0].Up...)
		_, err = x.rf.Feeds(x.ctx)
		x.wantCode(err, rowfeed.SchemaVersion)
		x.exec("CREATE TABLE rowfeed_cursors (name VARCHAR(100), value BIGINT)")
		before := x.db.Dump(t)
		_, err = x.rf.Migrate(x.ctx)
		x.wantCode(err, rowfeed.Conflict)
		if !strings.Contains(err.Error(), "rowfeed_cursors") || x.db.Dump(t) != before {
			x.Errorf("a table of the user's own: %v", err)
		}
		x.exec("DROP TABLE rowfeed_cursors")
		x.migrate()
		if after := x.db.Dump(x.T); after != fresh {
			x.Errorf("upgraded:\n%s\nfresh:\n%s", after, fresh)
		}
	})
}

// TestPrefixAndSchema: rowfeed's tables have the names and the place asked for.
func TestPrefixAndSchema(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		cfg := &rowfeed.Config{Prefix: rowfeed.NoPrefix}
		if e.Family == "postgres" {
			cfg.Schema = `Feeds & "more"`
		}
		x := newEnv(t, e, cfg)
		if e.Family == "postgres" {
			_, err := x.rf.Migrate(x.ctx)
			if err == nil {
				t.Error("a schema that does not exist was accepted")
			}
			x.exec(`CREATE SCHEMA "Feeds & ""more"""`)
		}
		x.migrate()
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 0)")
		cursor := x.wantDrain(f, "", kv(1, "a", 0))
		if e.Family == "postgres" {
			// Whatever the session's search_path, and whoever the writer.
			x.exec(`CREATE SCHEMA elsewhere; SET search_path = elsewhere; UPDATE public.kv SET v = 1; SET search_path = public`)
			x.wantDrain(f, cursor, kv(1, "a", 1))
			x.scalar(`SELECT count(*) FROM "Feeds & ""more""".positions_kv`)
			return
		}
		x.scalar("SELECT count(*) FROM positions_kv")
	})
}

// TestWriterWithoutRights (H22): a session with rights on its own table only
// writes it as before.
func TestWriterWithoutRights(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		f := x.addKV()
		write := []string{"INSERT INTO kv VALUES (1, 'a', 0)", "UPDATE kv SET v = 1", "UPDATE kv SET id = 2", "DELETE FROM kv WHERE id = 9"}
		switch x.family() {
		case "sqlite":
			return // has no users
		case "postgres":
			x.exec("CREATE ROLE writer_"+x.db.Name, "GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON kv TO writer_"+x.db.Name)
			x.Cleanup(func() {
				x.exec("DROP OWNED BY writer_"+x.db.Name, "DROP ROLE writer_"+x.db.Name)
			})
			for _, s := range append(write, "TRUNCATE kv", "INSERT INTO kv VALUES (2, 'a', 1)") {
				x.exec("SET ROLE writer_" + x.db.Name + "; " + s + "; RESET ROLE")
			}
		case "mysql":
			x.exec("CREATE USER writer_"+x.db.Name+"@'%' IDENTIFIED BY 'pw'", "GRANT SELECT, INSERT, UPDATE, DELETE ON "+x.db.Name+".kv TO writer_"+x.db.Name+"@'%'")
			x.Cleanup(func() { x.exec("DROP USER writer_" + x.db.Name + "@'%'") })
			other, err := sql.Open("mysql", "writer_"+x.db.Name+":pw@"+hostOf(x.db.URL))
			if err != nil {
				x.Fatal(err)
			}
			defer other.Close()
			for _, s := range write {
				if _, err := other.ExecContext(x.ctx, s); err != nil {
					x.Fatalf("%s: %v", s, err)
				}
			}
		}
		x.wantDrain(f, "", kv(2, "a", 1))
	})
}

// TestForeignOperators (H22): the trigger's function runs with the rights of
// its owner, so a session cannot make it call an operator of the session's own.
func TestForeignOperators(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere operators cannot be replaced
	each(t, func(x *env) {
		f := x.addKV()
		x.exec("CREATE SCHEMA evil")
		for _, of := range []string{"bigint", "pg_catalog.text", "numeric"} {
			x.exec("CREATE FUNCTION evil.called("+of+", "+of+") RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'called as %', current_user; END $$",
				"CREATE OPERATOR evil.= (LEFTARG = "+of+", RIGHTARG = "+of+", FUNCTION = evil.called)",
				"CREATE OPERATOR evil.<> (LEFTARG = "+of+", RIGHTARG = "+of+", FUNCTION = evil.called)")
		}
		x.exec("CREATE DOMAIN evil.text AS pg_catalog.text CHECK (false)",
			"INSERT INTO kv VALUES (1, 'a', 0)",
			"CREATE TABLE prices (amount numeric NOT NULL PRIMARY KEY)") // whose equal values have different texts
		prices := x.add(rowfeed.FeedSpec{Name: "prices", Table: "prices"})
		x.exec("SET search_path = evil, pg_catalog, public; INSERT INTO public.kv VALUES (3, 'b', 0), (4, 'c', 0); UPDATE public.kv SET id = 2 WHERE id OPERATOR(pg_catalog.=) 1; " +
			"DELETE FROM public.kv WHERE id OPERATOR(pg_catalog.=) 3; INSERT INTO public.prices VALUES (1.0), (2); UPDATE public.prices SET amount = 1.00 WHERE amount OPERATOR(pg_catalog.<) 2; RESET search_path")
		x.wantDrain(f, "", kv(4, "c", 0), kv(2, "a", 0))
		x.publish(prices)
		if n := x.scalar("SELECT count(*) FROM rowfeed_positions_prices"); n != 2 {
			x.Errorf("%d prices", n)
		}
		x.wantSound(prices)
	})
}

// TestForeignPath (H22): a domain's CHECK may call a function of the user's, and that finds names
// by the session's search_path. The trigger's function runs with its owner's rights, and has a path
// of its own there: PostgreSQL asks the CHECK when the table's key has another type than rowfeed's tables.
func TestForeignPath(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere columns have no types of the user's
	each(t, func(x *env) {
		x.exec("CREATE FUNCTION below(bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN abs($1) < 100; END $$",
			"CREATE DOMAIN small AS bigint CHECK (below(VALUE))",
			"CREATE TABLE limited (id small NOT NULL PRIMARY KEY)",
			"CREATE SCHEMA evil",
			"CREATE FUNCTION evil.abs(bigint) RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN IF pg_trigger_depth() > 0 THEN RAISE EXCEPTION 'called as %', current_user; END IF; RETURN $1; END $$")
		f := x.add(rowfeed.FeedSpec{Name: "limited", Table: "limited"})
		x.exec("SET search_path = evil, pg_catalog, public; INSERT INTO public.limited VALUES (1); UPDATE public.limited SET id = 2; RESET search_path")
		x.publish(f)
		if n := x.scalar("SELECT count(*) FROM rowfeed_positions_limited"); n != 1 {
			x.Errorf("%d keys", n)
		}
		x.wantSound(f)
		// Until the upgrade keys of another type are cast to the domain.
		x.exec("ALTER TABLE limited ALTER COLUMN id TYPE bigint")
		x.db.Reconnect() // a session keeps the plan for the former type
		x.exec("SET search_path = evil, pg_catalog, public; UPDATE public.limited SET id = 3; RESET search_path",
			"ALTER TABLE limited ALTER COLUMN id TYPE small")
		x.exec("ALTER FUNCTION rowfeed_limited_capture() RESET search_path")
		if problems, err := f.Admin().Verify(x.ctx); err != nil || len(problems) != 1 {
			x.Errorf("%q, %v", problems, err)
		}
	})
}

// hostOf turns mysql://root@127.0.0.1:1/db into the driver's tcp(127.0.0.1:1)/db.
func hostOf(url string) string {
	rest := url[strings.Index(url, "@")+1:]
	host, db, _ := strings.Cut(rest, "/")
	return "tcp(" + host + ")/" + db
}

// TestLastInsertID (H22): the ids that sessions ask for after an INSERT are not those of
// the change records, except for PostgreSQL's lastval(), which GUARANTEES.md names.
func TestLastInsertID(t *testing.T) {
	testdb.Quick(t)
	each(t, func(x *env) {
		x.exec(x.by(map[string]string{
			"sqlite":   "CREATE TABLE a (id INTEGER PRIMARY KEY, v INT)",
			"postgres": "CREATE TABLE a (id bigserial PRIMARY KEY, v int)",
			"mysql":    "CREATE TABLE a (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)",
		}))
		f := x.add(rowfeed.FeedSpec{Name: "a", Table: "a"})
		x.exec("INSERT INTO a (id, v) VALUES (40, 0), (41, 0)")
		if x.family() == "postgres" {
			x.exec("SELECT setval('a_id_seq', 41)")
			var id int64
			if err := x.db.Admin().QueryRow("INSERT INTO a (v) VALUES (1) RETURNING id").Scan(&id); err != nil || id != 42 {
				x.Errorf("RETURNING id: %d %v", id, err)
			}
			conn, err := x.db.Admin().Conn(x.ctx)
			if err != nil {
				x.Fatal(err)
			}
			defer conn.Close()
			if err := conn.QueryRowContext(x.ctx, "INSERT INTO a (v) VALUES (1); SELECT currval('a_id_seq')").Scan(&id); err != nil {
				if err := errors.Join(execOn(x, conn, "INSERT INTO a (v) VALUES (1)"), conn.QueryRowContext(x.ctx, "SELECT currval('a_id_seq')").Scan(&id)); err != nil {
					x.Fatal(err)
				}
			}
			if id != 43 {
				x.Errorf("currval: %d", id)
			}
		} else {
			res, err := x.db.Admin().Exec("INSERT INTO a (v) VALUES (1)")
			if err != nil {
				x.Fatal(err)
			}
			if id, err := res.LastInsertId(); err != nil || id != 42 {
				x.Errorf("last insert id %d %v", id, err)
			}
			if n, _ := res.RowsAffected(); n != 1 {
				x.Errorf("%d rows affected", n)
			}
		}
		x.publish(f)
	})
}

func execOn(x *env, conn *sql.Conn, query string) error {
	_, err := conn.ExecContext(x.ctx, query)
	return err
}

// TestRefusesHiddenRows (H5, V7): row security that hides rows from rowfeed's user
// is an error everywhere, never a delete.
func TestRefusesHiddenRows(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.PostgreSQL...) // the others have no row security
	each(t, func(x *env) {
		f := x.addKV()
		x.exec("INSERT INTO kv VALUES (1, 'a', 0)", "UPDATE kv SET v = 1")
		role := "feeder_" + x.db.Name
		x.exec("CREATE ROLE "+role+" LOGIN", "GRANT ALL ON ALL TABLES IN SCHEMA public TO "+role, "GRANT CREATE ON SCHEMA public TO "+role)
		x.Cleanup(func() { x.exec("DROP OWNED BY "+role, "DROP ROLE "+role) })
		other := &testdb.Database{Engine: x.engine, URL: strings.Replace(x.db.URL, "//postgres@", "//"+role+"@", 1), Name: x.db.Name}
		y := openEnv(x.T, other, nil)
		g, err := y.rf.Feed(x.ctx, "kv")
		if err != nil {
			x.Fatal(err)
		}
		x.exec("ALTER TABLE kv ENABLE ROW LEVEL SECURITY", "CREATE POLICY mine ON kv USING (id > 100)")
		if problems, err := g.Admin().Verify(x.ctx); err != nil || !strings.Contains(strings.Join(problems, "; "),
			"row security policies hide rows") {
			x.Errorf("problems %q, %v", problems, err)
		}
		_, err = g.Publish(x.ctx)
		x.wantCode(err, rowfeed.Refused)
		_, err = g.Fetch(x.ctx, rowfeed.Request{})
		x.wantCode(err, rowfeed.Refused)
		_, err = y.rf.AddFeed(x.ctx, rowfeed.FeedSpec{Name: "more", Table: "kv"}, nil)
		x.wantCode(err, rowfeed.Refused)
		x.wantDrain(f, "", kv(1, "a", 1)) // the owner sees all rows, and so does its feed
	})
}

// TestUnsafeDurability: a setting under which commits can be forgotten is refused,
// or raised for the transaction.
func TestUnsafeDurability(t *testing.T) {
	testdb.SQLite.Require(t)
	x := newEnv(t, testdb.SQLite, nil)
	x.migrate()
	x.addKV()
	x.exec("INSERT INTO kv VALUES (1, 'a', 0)")
	careless := x.db.OpenTapped(t, testdb.Hooks{}, "_pragma=synchronous(normal)")
	rf, err := rowfeed.Open(x.ctx, careless, x.dialect, nil)
	if err != nil {
		t.Fatal(err)
	}
	f, err := rf.Feed(x.ctx, "kv")
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Publish(x.ctx)
	x.wantCode(err, rowfeed.UnsafeDurability)
	rf, err = rowfeed.Open(x.ctx, careless, x.dialect, &rowfeed.Config{UnsafeDurability: true})
	if err != nil {
		t.Fatal(err)
	}
	if f, err = rf.Feed(x.ctx, "kv"); err != nil {
		t.Fatal(err)
	}
	if n, err := f.Publish(x.ctx); n != 1 || err != nil {
		t.Errorf("accepted: %d %v", n, err)
	}
}
