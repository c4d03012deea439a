package ulid

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// misuses are what a writer of a blocking feed can do wrong, as the table of
// docs/GUARANTEES.md names it, and what then happens, in the table's words.
var misuses = map[string]func(m *misuse) string{
	"lock without a transaction":                         (*misuse).withoutTransaction,
	"ULIDs used in a later transaction":                  (*misuse).later,
	"a savepoint from before the lock is rolled back":    (*misuse).savepoint,
	"an offset of 10^11 or more":                         (*misuse).offset,
	"a hint more than a minute ahead":                    (*misuse).ahead,
	"the transaction has read before another took ULIDs": (*misuse).snapshot,
	"two rows with one ULID in a shard":                  (*misuse).twice,
	"a ULID made without a lock":                         (*misuse).made,
	"a row deleted or updated":                           (*misuse).changed,
	"the ULID of another shard that was locked":          (*misuse).other,
}

// misuse is a writer who does wrong, with Feed.Lock or by SQL.
type misuse struct {
	*suite.Events
	conn  *sql.Conn
	plain bool
	tx    *sql.Tx // the last one
}

// TestMisuseIsRefusedAsDocumented (M33, M40, H8): every cell of the table of what each database can refuse is true.
func TestMisuseIsRefusedAsDocumented(t *testing.T) {
	testdb.Quick(t)
	table := guaranteed(t)
	if len(table) != len(misuses) {
		t.Errorf("the table has %d rows, there are %d tests", len(table), len(misuses))
	}
	for row, cells := range table {
		do := misuses[row]
		if do == nil {
			t.Errorf("nothing shows what the table says about %q", row)
			continue
		}
		t.Run(strings.ReplaceAll(row, " ", "-"), func(t *testing.T) {
			suite.EachULID(t, func(x *suite.Events) {
				for _, way := range []string{"`Feed.Lock`", "SQL"} {
					column := x.By(map[string]string{"sqlite": "SQLite", "postgres": "PostgreSQL", "mysql": "MariaDB and MySQL"}) + ", " + way
					want, ok := cells[column]
					if ok != (way != "SQL" || x.Family() != "sqlite") {
						t.Fatalf("%q is a column: %v", column, ok)
					}
					if !ok {
						continue // it has no functions
					}
					conn, err := x.DB.Admin().Conn(x.Ctx)
					if err != nil {
						t.Fatal(err)
					}
					m := &misuse{x, conn, way == "SQL", nil}
					if got := do(m); got != want {
						t.Errorf("%s: it is %q, and the table says %q", column, got, want)
					}
					if m.tx != nil {
						_ = m.tx.Rollback() // where what it does was refused
					}
					if err := conn.Close(); err != nil {
						t.Fatal(err)
					}
					x.Exec("DELETE FROM events")
					x.WantSound(x.Feed)
				}
			})
		})
	}
}

// guaranteed reads the table: by row and column what is said.
func guaranteed(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/GUARANTEES.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "What a writer can do wrong")
	_, section, _ = strings.Cut(section, "\n\n")
	section, _, _ = strings.Cut(section, "\n\n")
	split := func(line string) []string {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		return cells
	}
	lines := strings.Split(strings.TrimSpace(section), "\n")
	head := split("| row " + strings.TrimPrefix(lines[0], "| "))
	table := map[string]map[string]string{}
	for _, line := range lines[2:] {
		cells := split(line)
		if len(cells) != len(head) {
			t.Fatalf("%d cells under %d headings: %s", len(cells), len(head), line)
		}
		row := map[string]string{}
		for i, cell := range cells[1:] {
			switch cell {
			case "as on SQLite":
				cell = cells[1]
			case "as `Feed.Lock`":
				cell = row[head[i]] // the column before
			}
			row[head[i+1]] = cell
		}
		table[cells[0]] = row
	}
	return table
}

// begin opens a transaction on the connection, as functions know it.
func (m *misuse) begin(isolation sql.IsolationLevel) *sql.Tx {
	m.Helper()
	if m.Family() == "sqlite" {
		isolation = sql.LevelDefault
	}
	tx, err := m.conn.BeginTx(m.Ctx, &sql.TxOptions{Isolation: isolation})
	if err != nil {
		m.Fatal(err)
	}
	m.tx = tx
	return tx
}

// taking is a lock: what makes ULIDs of it, and what verifies it.
type taking struct {
	insert func(tx *sql.Tx, id, shard int, i int64) error
	verify func() error
}

func (m *misuse) take(tx *sql.Tx, shard int, hint time.Time) (taking, error) {
	if m.plain {
		_, err := m.LockBySQL(tx, shard, timestamp(m.Events.Env, hint))
		return taking{func(tx *sql.Tx, id, shard int, i int64) error {
			_, err := tx.ExecContext(m.Ctx, fmt.Sprintf("INSERT INTO events (id, shard, ulid) VALUES (%d, %d, %s)", id, shard, m.BySQL(fmt.Sprint(i))))
			return err
		}, func() error { return nil }}, err
	}
	u, err := m.Feed.Lock(m.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{shard}, Hint: hint})
	return taking{func(tx *sql.Tx, id, shard int, i int64) error {
		at, err := u.At(shard, i)
		if err == nil {
			err = m.TryEvent(m.Ctx, tx, id, shard, at, "")
		}
		return err
	}, func() error { return u.Verify(m.Ctx) }}, err
}

func (m *misuse) must(err error) {
	m.Helper()
	if err != nil {
		m.Fatal(err)
	}
}

func (m *misuse) taken(tx *sql.Tx, shard int) taking {
	m.Helper()
	t, err := m.take(tx, shard, time.Time{})
	m.must(err)
	return t
}

// given is how far a shard is, as its row says.
func (m *misuse) given(shard int) [2]int64 {
	m.Helper()
	count := m.Scalar(fmt.Sprintf("SELECT count(*) FROM rowfeed_shards WHERE shard = %d", shard))
	if count == 0 {
		return [2]int64{}
	}
	return [2]int64{m.Scalar(fmt.Sprintf("SELECT ulid_high FROM rowfeed_shards WHERE shard = %d", shard)), m.Scalar(fmt.Sprintf("SELECT ulid_low FROM rowfeed_shards WHERE shard = %d", shard))}
}

func (m *misuse) withoutTransaction() string {
	m.Helper()
	if !m.plain {
		before := m.given(3)
		tx := m.begin(sql.LevelReadCommitted)
		m.In(tx, "COMMIT")
		_, err := m.take(tx, 3, time.Time{})
		if m.WantCode(err, rowfeed.InvalidRequest); !strings.Contains(err.Error(), "no transaction is open") {
			m.Error(err)
		}
		_ = tx.Rollback()
		if after := m.given(3); after != before {
			m.Errorf("the shard was at %v, and is at %v", before, after)
		}
		return "refused"
	}
	m.Write(4, 1, 1)
	before := m.given(4)
	if m.Family() == "mysql" {
		_, err := m.conn.ExecContext(m.Ctx, "CALL rowfeed_lock_events(4, NULL, @ulid, @high, @low)")
		if after := m.given(4); err == nil || !strings.Contains(err.Error(), "no transaction is open") || after != before {
			m.Errorf("the shard was at %v, and is at %v: %v", before, after, err)
		}
		return "refused"
	}
	_, err := m.conn.ExecContext(m.Ctx, "SELECT * FROM rowfeed_lock_events(4)")
	m.must(err)
	m.Write(4, 2, 2) // it does not wait
	_, err = m.conn.ExecContext(m.Ctx, "INSERT INTO events (id, shard, ulid) VALUES (3, 4, rowfeed_ulid_events(0))")
	if err == nil || !strings.Contains(err.Error(), "has taken no ULIDs") {
		m.Error(err)
	}
	return "the shard is free again after the statement; `rowfeed_ulid_<feed>` is refused"
}

func (m *misuse) later() string {
	m.Helper()
	tx := m.begin(sql.LevelReadCommitted)
	ulids := m.taken(tx, 3)
	m.Commit(tx)
	tx = m.begin(sql.LevelReadCommitted)
	if err := ulids.insert(tx, 1, 3, 0); err != nil {
		if !m.plain || !strings.Contains(err.Error(), "has taken no ULIDs") {
			m.Error(err)
		}
		return "refused"
	}
	if err := ulids.verify(); err != nil {
		m.WantCode(err, rowfeed.InvalidRequest)
		m.must(tx.Rollback())
		return "refused by `Verify`"
	}
	m.Commit(tx)
	return "not told: halves are numbers"
}

func (m *misuse) savepoint() string {
	m.Helper()
	tx := m.begin(sql.LevelReadCommitted)
	m.In(tx, "SAVEPOINT before_lock")
	ulids := m.taken(tx, 3)
	m.In(tx, "ROLLBACK TO SAVEPOINT before_lock")
	if err := ulids.insert(tx, 1, 3, 0); err != nil {
		if !m.plain || !strings.Contains(err.Error(), "a savepoint took them back") {
			m.Error(err)
		}
		return "refused"
	}
	if err := ulids.verify(); err != nil {
		m.WantCode(err, rowfeed.Conflict)
		m.must(tx.Rollback())
		return "refused by `Verify`"
	}
	m.Commit(tx)
	m.wantFinding("shard 3")
	return "not told; `check` finds a row above its shard's state"
}

// wantFinding asserts that check finds what was made without a lock.
func (m *misuse) wantFinding(words string) {
	m.Helper()
	findings, err := m.Feed.Admin().Check(m.Ctx)
	if err != nil || len(findings) != 1 || !strings.Contains(findings[0].Problem, words) {
		m.Errorf("check: %v, %v; want %q", findings, err, words)
	}
}

func (m *misuse) offset() string {
	m.Helper()
	for _, i := range []int64{-1, rowfeed.ULIDsPerLock, rowfeed.ULIDsPerLock + 1, 1<<63 - 1} {
		tx := m.begin(sql.LevelReadCommitted)
		if err := m.taken(tx, 3).insert(tx, 1, 3, i); err == nil {
			return fmt.Sprint("not told of ", i)
		}
		m.must(tx.Rollback())
	}
	tx := m.begin(sql.LevelReadCommitted)
	m.must(m.taken(tx, 3).insert(tx, 1, 3, rowfeed.ULIDsPerLock-1)) // the last one
	m.Commit(tx)
	return "refused"
}

func (m *misuse) ahead() string {
	m.Helper()
	before := m.given(3)
	tx := m.begin(sql.LevelReadCommitted)
	_, err := m.take(tx, 3, m.Now().Add(2*time.Minute))
	m.must(tx.Rollback())
	if after := m.given(3); err == nil || after != before {
		return fmt.Sprint("not told: ", err)
	}
	if !m.plain {
		m.WantCode(err, rowfeed.InvalidRequest)
	}
	if !strings.Contains(err.Error(), "ahead of the") {
		m.Error(err)
	}
	tx = m.begin(sql.LevelReadCommitted)
	_, err = m.take(tx, 3, m.Now().Add(30*time.Second))
	m.must(err)
	m.must(tx.Rollback())
	return "refused"
}

// unwrapped is the driver's own error.
func unwrapped(err error) error {
	for e := (*rowfeed.Error)(nil); errors.As(err, &e) && e.Err != nil; {
		err = e.Err
	}
	return err
}

func (m *misuse) twice() string {
	m.Helper()
	tx := m.begin(sql.LevelReadCommitted)
	ulids := m.taken(tx, 3)
	m.must(ulids.insert(tx, 1, 3, 5))
	if err := ulids.insert(tx, 2, 3, 5); err == nil {
		return "not told"
	}
	m.must(tx.Rollback())
	return "refused by the index"
}

// made writes a ULID of its own, above the shard's state and in a shard that has none.
func (m *misuse) made() string {
	m.Helper()
	m.Write(3, 1, 1)
	for i, shard := range []int{3, 99} {
		id := 2 + i
		tx := m.begin(sql.LevelReadCommitted)
		m.must(m.TryEvent(m.Ctx, tx, id, shard, ulid.MustParse("7ZZZZZZZZZZZZZZZZZZZZZZZZZ"), ""))
		m.Commit(tx)
		m.wantFinding(fmt.Sprint("shard ", shard, " "))
		m.Exec(fmt.Sprintf("DELETE FROM events WHERE id = %d", id))
	}
	return "not told; `check` finds one above its shard's state"
}

// other puts a row into a shard with the ULID of another one. Its own has come less far.
func (m *misuse) other() string {
	m.Helper()
	tx := m.begin(sql.LevelReadCommitted)
	_, err := m.take(tx, 8, time.UnixMilli(1))
	m.must(err)
	if err := m.taken(tx, 7).insert(tx, 1, 8, 0); err != nil {
		if !m.plain {
			m.WantCode(err, rowfeed.InvalidRequest)
			return "refused: `At` names the shard"
		}
		if !strings.Contains(err.Error(), "several shards") {
			m.Error(err)
		}
		return "refused, unless its own shard is named"
	}
	m.Commit(tx)
	cursor := m.Page(m.Feed, 8, "", 10).Cursor
	tx = m.begin(sql.LevelReadCommitted)
	ulids, err := m.take(tx, 8, time.UnixMilli(1))
	m.must(err)
	m.must(ulids.insert(tx, 2, 8, 0))
	m.Commit(tx)
	m.WantIDs(m.Page(m.Feed, 8, cursor, 10), false, 2)
	return "not told; the next lock goes on above it"
}

func (m *misuse) changed() string {
	m.Helper()
	m.Write(3, 1, 3)
	head := m.Page(m.Feed, 3, "", 10).Cursor
	m.Exec("DELETE FROM events WHERE id = 2", "UPDATE events SET data = 'changed' WHERE id = 1")
	if page := m.Page(m.Feed, 3, head, 10); len(page.Entries) > 0 || page.Cursor != head {
		return fmt.Sprintf("%+v", page)
	}
	m.WantIDs(m.Page(m.Feed, 3, "", 10), false, 1, 3)
	return "readers are not told"
}
