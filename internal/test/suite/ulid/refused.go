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

// misuses are the mistakes of writers that a table of docs/GUARANTEES.md lists. Each function makes the mistake and
// returns the outcome in the table's words.
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

// misuse is a writer that makes a mistake, with Feed.Lock or by SQL.
type misuse struct {
	*suite.Events
	conn  *sql.Conn
	plain bool
	tx    *sql.Tx // the last one
}

// TestMisuseIsRefusedAsDocumented (M33, M40, H8): every cell of the table about what writers can do wrong says what the
// database does.
func TestMisuseIsRefusedAsDocumented(t *testing.T) {
	testdb.Quick(t)
	table := guaranteed(t)
	if len(table) != len(misuses) {
		t.Errorf("the table has %d rows, there are %d tests", len(table), len(misuses))
	}
	for row, cells := range table {
		do := misuses[row]
		if do == nil {
			t.Errorf("no test covers the table's row %q", row)
			continue
		}
		t.Run(strings.ReplaceAll(row, " ", "-"), func(t *testing.T) {
			suite.EachULID(t, func(x *suite.Events) {
				x.Needs("ulid.guarantees_column")
				for _, way := range []string{"`Feed.Lock`", "SQL"} {
					column := x.Text("ulid.guarantees_column") + ", " + way
					want, ok := cells[column]
					if ok != (way != "SQL" || x.Has.Functions) {
						t.Fatalf("the table has the column %q: %v", column, ok)
					}
					if !ok {
						continue
					}
					conn, err := x.DB.Admin().Conn(x.Ctx)
					if err != nil {
						t.Fatal(err)
					}
					m := &misuse{x, conn, way == "SQL", nil}
					if got := do(m); got != want {
						t.Errorf("%s: the database shows %q, and the table says %q", column, got, want)
					}
					if m.tx != nil {
						_ = m.tx.Rollback() // fails if the transaction has ended
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

// guaranteed reads the table. It returns the cells by row and column.
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

// begin opens a transaction on the misuse's connection, whose session variables the functions use.
func (m *misuse) begin(isolation sql.IsolationLevel) *sql.Tx {
	m.Helper()
	if m.Has.OneWriter {
		isolation = sql.LevelDefault
	}
	tx, err := m.conn.BeginTx(m.Ctx, &sql.TxOptions{Isolation: isolation})
	if err != nil {
		m.Fatal(err)
	}
	m.tx = tx
	return tx
}

// locked is a locked shard: insert inserts a row with its i-th ULID, and verify is ULIDs.Verify.
type locked struct {
	insert func(tx *sql.Tx, id, shard int, i int64) error
	verify func() error
}

func (m *misuse) lock(tx *sql.Tx, shard int, hint time.Time) (locked, error) {
	if m.plain {
		_, err := m.LockBySQL(tx, shard, hintSQL(m.Events.Env, hint))
		return locked{func(tx *sql.Tx, id, shard int, i int64) error {
			return insertBySQL(m.Events, tx, id, shard, i)
		}, func() error { return nil }}, err
	}
	u, err := m.Feed.Lock(m.Ctx, rowfeed.InTx(tx), rowfeed.LockRequest{Shards: []int{shard}, Hint: hint})
	return locked{func(tx *sql.Tx, id, shard int, i int64) error {
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

func (m *misuse) locked(tx *sql.Tx, shard int) locked {
	m.Helper()
	t, err := m.lock(tx, shard, time.Time{})
	m.must(err)
	return t
}

// given returns the state of a shard.
func (m *misuse) given(shard int) [2]int64 {
	m.Helper()
	high, low := stateOf(m.Events.Env, shard)
	return [2]int64{high, low}
}

func (m *misuse) withoutTransaction() string {
	m.Helper()
	if !m.plain {
		before := m.given(3)
		tx := m.begin(sql.LevelReadCommitted)
		m.In(tx, "COMMIT")
		_, err := m.lock(tx, 3, time.Time{})
		if m.WantCode(err, rowfeed.InvalidRequest); !strings.Contains(err.Error(), "no transaction is open") {
			m.Error(err)
		}
		_ = tx.Rollback()
		if after := m.given(3); after != before {
			m.Errorf("the state was %v, and is %v", before, after)
		}
		return "refused"
	}
	m.Write(4, 1, 1)
	before := m.given(4)
	_, err := m.conn.ExecContext(m.Ctx, m.Text("ulid.lock", 4))
	if after := m.given(4); err == nil || !strings.Contains(err.Error(), "no transaction is open") || after != before {
		m.Errorf("the state was %v, and is %v: %v", before, after, err)
	}
	if !m.Has.TransactionULIDs {
		return "refused"
	}
	m.columnsOfLock(4)
	m.Write(4, 2, 2) // does not wait
	_, err = m.conn.ExecContext(m.Ctx, "INSERT INTO events (id, shard, ulid) VALUES (3, 4, "+m.BySQL("0")+")")
	if err == nil || !strings.Contains(err.Error(), "has taken no ULIDs") {
		m.Errorf("error %v, want one about missing ULIDs", err)
	}
	return "refused; a statement that the driver has prepared returns NULL, and `rowfeed_ulid_<feed>` is refused"
}

// columnsOfLock runs a lock without a transaction, as a statement that the driver prepares. The database cannot always
// tell: then the lock returns no ULID.
func (m *misuse) columnsOfLock(shard int) {
	m.Helper()
	var ulid []byte
	var high, low sql.NullInt64
	err := m.conn.QueryRowContext(m.Ctx, m.Text("ulid.lock_columns", shard)).Scan(&ulid, &high, &low)
	if err != nil && !strings.Contains(err.Error(), "no transaction is open") {
		m.Error(err)
	}
	if ulid != nil || high.Valid || low.Valid {
		m.Errorf("the lock of a statement that is its own transaction returned the ULID %x, %v, %v", ulid, high, low)
	}
}

func (m *misuse) later() string {
	m.Helper()
	tx := m.begin(sql.LevelReadCommitted)
	ulids := m.locked(tx, 3)
	m.Commit(tx)
	tx = m.begin(sql.LevelReadCommitted)
	if err := ulids.insert(tx, 1, 3, 0); err != nil {
		if !m.plain || !strings.Contains(err.Error(), "has taken no ULIDs") {
			m.Errorf("error %v, want one about missing ULIDs", err)
		}
		return "refused"
	}
	if err := ulids.verify(); err != nil {
		m.WantCode(err, rowfeed.InvalidRequest)
		m.must(tx.Rollback())
		return "refused by `Verify`"
	}
	m.Commit(tx)
	return "not detected: the procedure returns plain numbers"
}

func (m *misuse) savepoint() string {
	m.Helper()
	tx := m.begin(sql.LevelReadCommitted)
	m.In(tx, "SAVEPOINT before_lock")
	ulids := m.locked(tx, 3)
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
	return "not detected; `check` finds a row above its shard's state"
}

// wantFinding asserts that check reports one row.
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
		if err := m.locked(tx, 3).insert(tx, 1, 3, i); err == nil {
			return fmt.Sprintf("offset %d is accepted", i)
		}
		m.must(tx.Rollback())
	}
	tx := m.begin(sql.LevelReadCommitted)
	m.must(m.locked(tx, 3).insert(tx, 1, 3, rowfeed.ULIDsPerLock-1)) // the last ULID of a lock
	m.Commit(tx)
	return "refused"
}

func (m *misuse) ahead() string {
	m.Helper()
	before := m.given(3)
	tx := m.begin(sql.LevelReadCommitted)
	_, err := m.lock(tx, 3, m.Now().Add(2*time.Minute))
	m.must(tx.Rollback())
	if after := m.given(3); err == nil || after != before {
		return fmt.Sprintf("the state was %v, and is %v: %v", before, after, err)
	}
	if !m.plain {
		m.WantCode(err, rowfeed.InvalidRequest)
	}
	if !strings.Contains(err.Error(), "ahead of the") {
		m.Error(err)
	}
	tx = m.begin(sql.LevelReadCommitted)
	_, err = m.lock(tx, 3, m.Now().Add(30*time.Second))
	m.must(err)
	m.must(tx.Rollback())
	return "refused"
}

// unwrapped returns the driver's error.
func unwrapped(err error) error {
	for e := (*rowfeed.Error)(nil); errors.As(err, &e) && e.Err != nil; {
		err = e.Err
	}
	return err
}

func (m *misuse) twice() string {
	m.Helper()
	tx := m.begin(sql.LevelReadCommitted)
	ulids := m.locked(tx, 3)
	m.must(ulids.insert(tx, 1, 3, 5))
	if err := ulids.insert(tx, 2, 3, 5); err == nil {
		return "not detected"
	}
	m.must(tx.Rollback())
	return "refused by the index"
}

// made inserts ULIDs without a lock, above the state of a shard and into a shard without a state.
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
	return "not detected; `check` finds one above its shard's state"
}

// other inserts a row into a shard with the ULID of another shard, which is above the shard's state.
func (m *misuse) other() string {
	m.Helper()
	tx := m.begin(sql.LevelReadCommitted)
	_, err := m.lock(tx, 8, time.UnixMilli(1))
	m.must(err)
	if err := m.locked(tx, 7).insert(tx, 1, 8, 0); err != nil {
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
	ulids, err := m.lock(tx, 8, time.UnixMilli(1))
	m.must(err)
	m.must(ulids.insert(tx, 2, 8, 0))
	m.Commit(tx)
	m.WantIDs(m.Page(m.Feed, 8, cursor, 10), false, 2)
	return "not detected; the next lock continues above it"
}

func (m *misuse) changed() string {
	m.Helper()
	m.Write(3, 1, 3)
	head := m.Page(m.Feed, 3, "", 10).Cursor
	m.Exec("DELETE FROM events WHERE id = 2", "UPDATE events SET data = 'changed' WHERE id = 1")
	if page := m.Page(m.Feed, 3, head, 10); len(page.Entries) > 0 || page.Cursor != head {
		return fmt.Sprintf("readers get %+v", page)
	}
	m.WantIDs(m.Page(m.Feed, 3, "", 10), false, 1, 3)
	return "readers get no entry"
}
