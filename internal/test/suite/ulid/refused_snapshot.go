package ulid

import (
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/dialect"
)

// snapshot does so as the server is set, and where it knows another setting with that.
func (m *misuse) snapshot() string {
	m.Helper()
	outcome := m.fromSnapshot(1)
	if m.Family() != "mysql" {
		return outcome
	}
	const setting = "innodb_snapshot_isolation" // MariaDB's; on by default since 11.6.2
	var name, value string
	err := m.conn.QueryRowContext(m.Ctx, "SHOW VARIABLES LIKE '"+setting+"'").Scan(&name, &value)
	if !errors.Is(err, sql.ErrNoRows) {
		m.must(err)
		_, err = m.conn.ExecContext(m.Ctx, "SET SESSION "+setting+" = ON")
		m.must(err)
		if with := m.fromSnapshot(101); with != "READ COMMITTED: good; above: refused (`locked`)" {
			m.Errorf("with %s: %s", setting, with)
		}
		_, err = m.conn.ExecContext(m.Ctx, "SET SESSION "+setting+" = "+value)
		m.must(err)
	}
	return outcome + "; above READ COMMITTED refused (`locked`) where `" + setting + "` is on"
}

// fromSnapshot reads, has another writer take ULIDs, and then takes some itself, for rows from first on.
func (m *misuse) fromSnapshot(first int) string {
	m.Helper()
	m.Write(3, first, first)
	outcomes := map[bool][]sql.IsolationLevel{}
	for i, level := range isolations(m.Events.Env) {
		if m.Family() == "mysql" && level == sql.LevelSerializable {
			continue // what it reads it locks: nobody else takes anything
		}
		tx := m.begin(level)
		var n int
		m.must(tx.QueryRowContext(m.Ctx, "SELECT count(*) FROM rowfeed_shards").Scan(&n))
		m.Write(3, first+10+i, first+10+i)
		ulids, err := m.take(tx, 3, time.UnixMilli(1)) // the clock is no help: it counts on
		outcomes[err == nil] = append(outcomes[err == nil], level)
		if err != nil {
			if class := m.Dialect.Classify(unwrapped(err)); class != dialect.ClassRetry {
				m.Errorf("%v: %v is of class %v", level, err, class)
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
			m.Errorf("%v: the last row is %v", level, id)
		}
	}
	good, refused := outcomes[true], outcomes[false]
	switch {
	case len(refused) == 0:
		return "good"
	case len(good) == 0:
		return "refused (`locked`): begin IMMEDIATE"
	case len(good) == 1 && good[0] == sql.LevelReadCommitted:
		return "READ COMMITTED: good; above: refused (`locked`)"
	}
	return fmt.Sprintf("good in %v, refused in %v", good, refused)
}
