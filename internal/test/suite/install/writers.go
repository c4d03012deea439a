package install

import (
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// TestWriterNeedsRightsOnItsTableOnly (H22): a session with rights on only its own table writes it as it did before the
// feed existed.
func TestWriterNeedsRightsOnItsTableOnly(t *testing.T) {
	testdb.Quick(t)
	testdb.Only(t, testdb.Servers...) // SQLite has no logins
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		rights := "SELECT, INSERT, UPDATE, DELETE"
		writes := []string{
			"INSERT INTO kv VALUES (1, 'a', 0)",
			"UPDATE kv SET v = 1",
			"UPDATE kv SET id = 2",
			"DELETE FROM kv WHERE id = 9",
		}
		if x.Has.TruncateTriggers {
			rights += ", TRUNCATE"
			writes = append(writes, "TRUNCATE kv", "INSERT INTO kv VALUES (2, 'a', 1)")
		}
		w := x.NewLogin("writer", nil)
		x.RightsOn("kv", rights, w)
		for _, s := range writes {
			if _, err := w.Pool.ExecContext(x.Ctx, s); err != nil {
				x.Fatalf("%s: %v", s, err)
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
// change record. HOWTO-POSTGRES.md names the exception, lastval().
func TestLastInsertIDIsOfUsersTable(t *testing.T) {
	testdb.Quick(t)
	suite.Each(t, func(x *suite.Env) {
		x.Exec(x.Text("install.generated_id"))
		f := x.Add(rowfeed.FeedSpec{Name: "a", Table: "a"})
		x.Exec("INSERT INTO a (id, v) VALUES (40, 0), (41, 0)")
		x.Exec(x.Statements("install.next_id_is_42")...)
		conn, err := x.DB.Admin().Conn(x.Ctx)
		if err != nil {
			x.Fatal(err)
		}
		defer conn.Close()
		insert := "INSERT INTO a (v) VALUES (1)"
		res, err := conn.ExecContext(x.Ctx, insert)
		if err != nil {
			x.Fatal(err)
		}
		if n, err := res.RowsAffected(); err != nil || n != 1 {
			x.Errorf("the driver reports %d rows affected, %v, want 1", n, err)
		}
		if id, err := res.LastInsertId(); x.Has.LastInsertID && (err != nil || id != 42) {
			x.Errorf("the driver reports the last insert id %d, %v, want 42", id, err)
		}
		wantID := func(query string, want int64) {
			x.Helper()
			var id int64
			if err := conn.QueryRowContext(x.Ctx, query).Scan(&id); err != nil || id != want {
				x.Errorf("%s: id %d, %v, want %d", query, id, err, want)
			}
		}
		wantID(x.Text("install.last_id"), 42)
		if x.Has.Returning {
			wantID(insert+" RETURNING id", 43)
		}
		x.Publish(f)
	})
}
