package mysql_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"testing"
	"time"

	driver_mysql "github.com/go-sql-driver/mysql"

	"github.com/rowfeed/rowfeed/dialect"
	"github.com/rowfeed/rowfeed/dialect/mysql"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// M72: status names the transaction that holds back changes, as far as the server shows it. It works without if
// rowfeed's user lacks the privilege.
func TestStatusNamesBlockingTransaction(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY); CREATE TABLE other (id int PRIMARY KEY)")
		h.add(h.open(), "t")
		f, _ := h.feed("t")
		d := mysql.New()
		pool := h.pool()
		// InnoDB returns the same answer until there was no query for a tenth of a second.
		eventually := func(what, session string, good func(*dialect.Blocker) bool) {
			t.Helper()
			for end := time.Now().Add(time.Minute); ; <-time.After(150 * time.Millisecond) {
				found, _, err := d.Blockers(h.ctx(), dialect.On(h.Admin()), f)
				h.must(err)
				var b *dialect.Blocker
				if i := slices.IndexFunc(found, func(b dialect.Blocker) bool { return b.Session == session }); i >= 0 {
					b = &found[i]
				}
				if good(b) {
					return
				}
				if time.Now().After(end) {
					t.Errorf("%s: %+v", what, b)
					return
				}
			}
		}
		gone := func(b *dialect.Blocker) bool { return b == nil }
		for _, c := range []struct {
			query string
			want  map[testdb.Engine]string
		}{
			{"INSERT INTO t VALUES (1)", map[testdb.Engine]string{testdb.MariaDB: "wrote to some table",
				testdb.MySQL: "wrote to the feed"}},
			{"INSERT INTO other VALUES (1)", map[testdb.Engine]string{testdb.MariaDB: "wrote to some table"}},
			{"SELECT * FROM t", nil},
			{"UPDATE t SET id = 7 WHERE id = 12345", nil},
		} {
			tx, err := pool.BeginTx(h.ctx(), nil)
			h.must(err)
			var id string
			h.must(tx.QueryRowContext(h.ctx(), "SELECT CONNECTION_ID()").Scan(&id))
			_, err = tx.ExecContext(h.ctx(), c.query)
			h.must(err)
			eventually(c.query, id, func(b *dialect.Blocker) bool {
				if want := c.want[h.Engine]; want != "" {
					return b != nil && b.Scope == want && b.User == "root" && b.Host != "" && b.AgeMicros >= 0
				}
				return b == nil
			})
			h.must(tx.Rollback())
			eventually(c.query+", rolled back", id, gone)
		}
		user := "s_" + h.Name
		h.sql("CREATE USER " + user + "@'%' IDENTIFIED BY 'secret'; GRANT ALL ON " + h.Name + ".* TO " + user)
		t.Cleanup(func() { h.sql("DROP USER " + user) })
		found, unseen, err := d.Blockers(h.ctx(), dialect.On(h.as(user, "secret")), f)
		if want := "run `GRANT PROCESS ON *.* TO '" + user + "'@'%'`"; err != nil || len(found) > 0 ||
			unseen == nil || unseen.Next != want {
			t.Errorf("without the right to ask: %+v, %+v, %v", found, unseen, err)
		}
	})
}

func TestWrappedErrorsAreClassifiedByNumber(t *testing.T) {
	number := func(n uint16, message string) error {
		return fmt.Errorf("wrapped: %w", &driver_mysql.MySQLError{Number: n, Message: message})
	}
	for _, c := range []struct {
		err  error
		want dialect.Class
	}{
		{nil, dialect.ClassOther},
		{errors.New("what"), dialect.ClassOther},
		{number(1064, ""), dialect.ClassOther},
		{number(1213, ""), dialect.ClassRetry},
		{number(1020, ""), dialect.ClassRetry},
		{number(1205, ""), dialect.ClassLockTimeout},
		{number(1146, ""), dialect.ClassUndefined},
		{number(1054, ""), dialect.ClassUndefined},
		{number(1142, ""), dialect.ClassPermission},
		{number(1419, ""), dialect.ClassPermission},
		{number(1062, ""), dialect.ClassDuplicate},
		{number(1366, ""), dialect.ClassInvalid},
		{number(1406, ""), dialect.ClassInvalid},
		{number(1040, ""), dialect.ClassConnection},
		{number(1053, ""), dialect.ClassConnection},
		{number(1290, ""), dialect.ClassReadOnly},
		{number(1792, ""), dialect.ClassReadOnly},
		{number(1836, ""), dialect.ClassReadOnly},
		{fmt.Errorf("identity: %w", dialect.ErrReadOnly), dialect.ClassReadOnly},
		{number(1021, ""), dialect.ClassFull},
		{number(1114, ""), dialect.ClassFull},
		{number(1030, `Got error 28 "No space left on device" from storage engine InnoDB`), dialect.ClassFull},
		{number(1030, `Got error 168 - 'Unknown (generic) error from engine' from storage engine`), dialect.ClassOther},
		{number(1026, `Error writing file 'x' (Errcode: 28 "No space left on device")`), dialect.ClassFull},
		{number(1180, "Got error 28 during COMMIT"), dialect.ClassFull},
		{number(1026, "Error writing file './error 5/x' (errno: 28 - No space left on device)"), dialect.ClassFull},
		{number(1026, "Error writing file './errno: 28/x' (OS errno 5 - Input/output error)"), dialect.ClassOther},
		{number(1030, "Got error 128 from storage engine"), dialect.ClassOther},
		{number(1030, "Got error 2800 from storage engine"), dialect.ClassOther},
		{number(1064, "You have an error 28 in your SQL syntax"), dialect.ClassOther},
		{number(1180, "Got error 149 during COMMIT"), dialect.ClassOther},
		{fmt.Errorf("x: %w", driver_mysql.ErrInvalidConn), dialect.ClassConnection},
		{driver.ErrBadConn, dialect.ClassConnection},
		{io.EOF, dialect.ClassConnection},
		{io.ErrUnexpectedEOF, dialect.ClassConnection},
		{&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, dialect.ClassConnection},
		{context.DeadlineExceeded, dialect.ClassOther},
		{context.Canceled, dialect.ClassOther},
		{fmt.Errorf("feed: %w", dialect.ErrNoTable), dialect.ClassUndefined},
	} {
		if got := mysql.New().Classify(c.err); got != c.want {
			t.Errorf("%v is of class %d, want %d", c.err, got, c.want)
		}
	}
}

// Real errors of the servers.
func TestErrorsOfServersAreClassified(t *testing.T) {
	each(t, func(t *testing.T, h *harness) {
		h.sql("CREATE TABLE t (id int PRIMARY KEY, s varchar(3)); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
		for query, want := range map[string]dialect.Class{
			"SELECT * FROM nowhere":            dialect.ClassUndefined,
			"SELECT * FROM no_such_schema.t":   dialect.ClassUndefined,
			"SELECT nothing FROM t":            dialect.ClassUndefined,
			"SELECT no_such_function(1)":       dialect.ClassUndefined,
			"INSERT INTO t VALUES (1, 'x')":    dialect.ClassDuplicate,
			"INSERT INTO t VALUES (3, 'long')": dialect.ClassInvalid,
			"INSERT INTO t VALUES ('x', 'x')":  dialect.ClassInvalid,
			"SELEC":                            dialect.ClassOther,
		} {
			_, err := h.Admin().ExecContext(h.ctx(), query)
			if got := mysql.New().Classify(err); err == nil || got != want {
				t.Errorf("%s: %v is of class %d, want %d", query, err, got, want)
			}
		}
		// A killed connection, before or after the statement had begun.
		conn, err := h.pool().Conn(h.ctx())
		h.must(err)
		defer conn.Close()
		var id int64
		h.must(conn.QueryRowContext(h.ctx(), "SELECT CONNECTION_ID()").Scan(&id))
		h.sql(fmt.Sprintf("KILL %d", id))
		_, err = conn.ExecContext(h.ctx(), "UPDATE t SET s = 'x'")
		if got := mysql.New().Classify(err); got != dialect.ClassConnection {
			t.Errorf("killed: %v is of class %d", err, got)
		}
	})
}
