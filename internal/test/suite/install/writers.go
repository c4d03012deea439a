package install

import (
	"database/sql"
	"errors"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestWriterNeedsRightsOnItsTableOnly (H22): a session with rights on only its own table writes it as it did before the
// feed existed.
func TestWriterNeedsRightsOnItsTableOnly(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		write := []string{
			"INSERT INTO kv VALUES (1, 'a', 0)",
			"UPDATE kv SET v = 1",
			"UPDATE kv SET id = 2",
			"DELETE FROM kv WHERE id = 9",
		}
		switch x.Family() {
		case "sqlite":
			return // has no users
		case "postgres":
			x.Exec("CREATE ROLE writer_"+x.DB.Name,
				"GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON kv TO writer_"+x.DB.Name)
			x.Cleanup(func() {
				x.Exec("DROP OWNED BY writer_"+x.DB.Name, "DROP ROLE writer_"+x.DB.Name)
			})
			for _, s := range append(write, "TRUNCATE kv", "INSERT INTO kv VALUES (2, 'a', 1)") {
				x.Exec("SET ROLE writer_" + x.DB.Name + "; " + s + "; RESET ROLE")
			}
		case "mysql":
			x.Exec("CREATE USER writer_"+x.DB.Name+"@'%' IDENTIFIED BY 'pw'",
				"GRANT SELECT, INSERT, UPDATE, DELETE ON "+x.DB.Name+".kv TO writer_"+x.DB.Name+"@'%'")
			x.Cleanup(func() { x.Exec("DROP USER writer_" + x.DB.Name + "@'%'") })
			other, err := sql.Open("mysql", "writer_"+x.DB.Name+":pw@"+suite.HostOf(x.DB.URL))
			if err != nil {
				x.Fatal(err)
			}
			defer other.Close()
			for _, s := range write {
				if _, err := other.ExecContext(x.Ctx, s); err != nil {
					x.Fatalf("%s: %v", s, err)
				}
			}
		}
		x.WantDrain(f, "", suite.KV(2, "a", 1))
	})
}

// TestTriggerIgnoresOperatorsOfSession (H22): the trigger's function runs with the rights of its owner. A session
// cannot make it call an operator that the session created.
func TestTriggerIgnoresOperatorsOfSession(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere operators cannot be replaced
	suite.Each(t, func(x *suite.Env) {
		f := x.AddKV()
		for _, of := range []string{"bigint", "pg_catalog.text", "numeric"} {
			x.Exec(x.Statements("install.own_operators", of)...)
		}
		x.Exec(x.Statements("install.own_text")...)
		prices := x.Add(rowfeed.FeedSpec{Name: "prices", Table: "prices"})
		x.Exec(x.Text("install.write_with_own_operators"))
		x.WantDrain(f, "", suite.KV(4, "c", 0), suite.KV(2, "a", 0))
		x.Publish(prices)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_positions_prices"); n != 2 {
			x.Errorf("%d prices", n)
		}
		x.WantSound(prices)
	})
}

// TestTriggerIgnoresSearchPathOfSession (H22): a domain's CHECK can call a function that finds names by search_path.
// The trigger's function runs with its owner's rights and sets a path of its own. PostgreSQL evaluates the CHECK if the
// table's key has another type than rowfeed's tables.
func TestTriggerIgnoresSearchPathOfSession(t *testing.T) {
	testdb.Only(t, testdb.PostgreSQL...) // elsewhere columns have no types of the user's
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Statements("install.key_of_domain")...)
		f := x.Add(rowfeed.FeedSpec{Name: "limited", Table: "limited"})
		x.Exec(x.Text("install.write_on_own_path",
			"INSERT INTO public.limited VALUES (1); UPDATE public.limited SET id = 2"))
		x.Publish(f)
		if n := x.Scalar("SELECT count(*) FROM rowfeed_positions_limited"); n != 1 {
			x.Errorf("%d keys", n)
		}
		x.WantSound(f)
		// Until the upgrade, keys of another type are cast to the domain.
		x.Exec("ALTER TABLE limited ALTER COLUMN id TYPE bigint")
		x.DB.Reconnect() // an open session keeps the plan for the former type
		x.Exec(x.Text("install.write_on_own_path", "UPDATE public.limited SET id = 3"),
			"ALTER TABLE limited ALTER COLUMN id TYPE small",
			"ALTER FUNCTION rowfeed_limited_capture() RESET search_path")
		if problems, err := f.Admin().Verify(x.Ctx); err != nil || len(problems) != 1 {
			x.Errorf("%q, %v", problems, err)
		}
	})
}

// TestLastInsertIDIsOfUsersTable (H22): the id that a session asks for after an INSERT is that of its row, not of the
// change record. GUARANTEES.md names the exception, PostgreSQL's lastval().
func TestLastInsertIDIsOfUsersTable(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Text("install.generated_id"))
		f := x.Add(rowfeed.FeedSpec{Name: "a", Table: "a"})
		x.Exec("INSERT INTO a (id, v) VALUES (40, 0), (41, 0)")
		if x.Family() == "postgres" {
			x.Exec("SELECT setval('a_id_seq', 41)")
			var id int64
			if err := x.DB.Admin().QueryRow("INSERT INTO a (v) VALUES (1) RETURNING id").Scan(&id); err != nil ||
				id != 42 {
				x.Errorf("RETURNING id: %d %v", id, err)
			}
			conn, err := x.DB.Admin().Conn(x.Ctx)
			if err != nil {
				x.Fatal(err)
			}
			defer conn.Close()
			query := func(text string) error { return conn.QueryRowContext(x.Ctx, text).Scan(&id) }
			insert := "INSERT INTO a (v) VALUES (1)"
			if err := query(insert + "; SELECT currval('a_id_seq')"); err != nil {
				must(x, errors.Join(execOn(x, conn, insert), query("SELECT currval('a_id_seq')")))
			}
			if id != 43 {
				x.Errorf("currval: %d", id)
			}
		} else {
			res, err := x.DB.Admin().Exec("INSERT INTO a (v) VALUES (1)")
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
		x.Publish(f)
	})
}
