package ulid

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
)

// snapshot tries fromSnapshot with the server's settings. If the database has a setting that refuses old snapshots,
// snapshot also tries with that.
func (m *misuse) snapshot() string {
	m.Helper()
	outcome := m.fromSnapshot(1)
	show := m.Text("ulid.show_snapshot_setting")
	if show == "" {
		return outcome
	}
	var name, value string
	err := m.conn.QueryRowContext(m.Ctx, show).Scan(&name, &value)
	if !errors.Is(err, sql.ErrNoRows) {
		m.must(err)
		_, err = m.conn.ExecContext(m.Ctx, m.Text("ulid.set_snapshot_setting", "ON"))
		m.must(err)
		if with := m.fromSnapshot(101); with != "READ COMMITTED: works; above: refused (`locked`)" {
			m.Errorf("with %s: %s", name, with)
		}
		_, err = m.conn.ExecContext(m.Ctx, m.Text("ulid.set_snapshot_setting", value))
		m.must(err)
	}
	return outcome + m.Text("ulid.snapshot_setting_outcome")
}

// fromSnapshot reads in a transaction, lets another writer lock the shard, and then locks the shard itself. Its rows
// have ids from first on.
func (m *misuse) fromSnapshot(first int) string {
	m.Helper()
	m.Write(3, first, first)
	outcomes := map[bool][]sql.IsolationLevel{}
	for i, level := range isolations(m.Events.Env) {
		if m.Has.LockingSerializable && level == sql.LevelSerializable {
			continue // the other writer would wait for this transaction
		}
		tx := m.begin(level)
		var n int
		m.must(tx.QueryRowContext(m.Ctx, "SELECT count(*) FROM rowfeed_shards").Scan(&n))
		m.Write(3, first+10+i, first+10+i)
		ulids, err := m.lock(tx, 3, time.UnixMilli(1)) // with an old hint, only the state decides
		outcomes[err == nil] = append(outcomes[err == nil], level)
		if err != nil {
			if class := m.Dialect.Classify(unwrapped(err)); class != dialect.ClassRetry {
				m.Errorf("%v: the error %v has class %v, want that of a retry", level, err, class)
			}
			if !m.plain {
				m.WantCode(err, rowfeed.Locked)
			}
			m.must(tx.Rollback())
			continue
		}
		m.must(ulids.insert(tx, first+20+i, 3, 0))
		m.Commit(tx)
		page := m.Page(m.Feed, 3, "", 100)
		if id, _ := page.Entries[len(page.Entries)-1].Key.Get("id"); id != int64(first+20+i) {
			m.Errorf("%v: the last row of the page is %v, want %d", level, id, first+20+i)
		}
	}
	works, refused := outcomes[true], outcomes[false]
	switch {
	case len(refused) == 0:
		return "works"
	case len(works) == 0:
		return "refused (`locked`): begin IMMEDIATE"
	case len(works) == 1 && works[0] == sql.LevelReadCommitted:
		return "READ COMMITTED: works; above: refused (`locked`)"
	}
	return fmt.Sprintf("works in %v, refused in %v", works, refused)
}
