package peers

import (
	"context"
	"time"
)

// noPeer reads nothing: it shows what the server does by itself.
var withoutPeer = contestant{name: "none", configurations: []configuration{
	{"–", "", func() peer { return noPeer{} }},
}}

type noPeer struct{}

func (noPeer) begin(*cell)                                    {}
func (noPeer) record(context.Context, userTx, []string) error { return nil }
func (noPeer) run(context.Context, handler) error             { return nil }
func (noPeer) end(context.Context) error                      { return nil }

// idleMeasure asks the server itself, so that the peers' drivers make no difference.
var idleMeasure = peerMeasure{
	name:  "idle",
	title: "A consumer to which nothing is written",
	head:  []string{"statements/s, BEGIN and COMMIT included", "log written, bytes/s (WAL or redo)"},
	plot:  dots{axis: "statements/s", of: []string{"statements"}, named: []string{"median"}, least: 0.1},
	also: func(entrants []entrant) (more []entrant) {
		// The cost and the time to the first change belong together: as in first, and with the defaults.
		for _, who := range entrants {
			if byDefault := who.with(who.configurations[0].name); byDefault.key() != who.key() {
				more = append(more, byDefault)
			}
		}
		return append(more, withoutPeer.with("–"))
	},
	cell: func(c *cell) {
		if c.Family == "postgres" {
			c.SQL("CREATE EXTENSION pg_stat_statements")
		}
		if c.contestant != &withoutPeer {
			c.start()
			c.warm()
		}
		c.settled()
		time.Sleep(*window) // wait until pauses have reached their maximum
		written := c.logWritten()
		asked, began := c.statements(), time.Now()
		time.Sleep(4 * *window)
		asked = c.statements() - asked
		took := time.Since(began).Seconds()
		c.p.add(c.entrant, "statements", float64(asked)/took)
		c.p.add(c.entrant, "log", float64(c.logWritten()-written)/took)
		c.countErrors(false)
	},
	row: func(s *standings, who entrant) []string {
		return []string{ms(s.of(who, "statements").Median()), count(s.of(who, "log").Median())}
	},
}

// statements returns the number of statements that clients have sent so far, without this one.
func (c *cell) statements() int64 {
	c.Helper()
	if c.Family == "postgres" {
		return c.Number("SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query NOT LIKE " +
			"'%pg_stat_statements%' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())")
	}
	return c.status("Questions") - 1
}

// logWritten returns the position that the log has reached.
func (c *cell) logWritten() int64 {
	c.Helper()
	switch c.Engine.Name {
	case "mariadb":
		return c.status("Innodb_lsn_current")
	case "mysql":
		return c.status("Innodb_redo_log_current_lsn")
	}
	return c.Number("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
}

func (c *cell) status(name string) (value int64) {
	c.Helper()
	var found string
	c.Must(c.Admin().QueryRowContext(c.Context(), "SHOW GLOBAL STATUS LIKE '"+name+"'").Scan(&found, &value))
	return value
}
