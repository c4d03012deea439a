package peers

import (
	"context"
	"time"
)

// nobody reads nothing: what the server does by itself.
var nobodyPeer = contestant{name: "nobody", configurations: []configuration{
	{"–", "", func() peer { return nobody{} }},
}}

type nobody struct{}

func (nobody) begin(*cell)                                    {}
func (nobody) record(context.Context, userTx, []string) error { return nil }
func (nobody) run(context.Context, handler) error             { return nil }
func (nobody) end(context.Context) error                      { return nil }

// idleMeasure asks the server itself, so that it does not matter through which driver a peer asks.
var idleMeasure = peerMeasure{
	name:  "idle",
	title: "A consumer to which nothing is written",
	head:  []string{"statements/s, BEGIN and COMMIT included", "log written, bytes/s (WAL or redo)"},
	plot:  dots{axis: "statements/s", of: []string{"statements"}, named: []string{"median"}, least: 0.1},
	also: func(entrants []entrant) (more []entrant) {
		// What it costs and how soon the first change comes belong together: as in first, and by default.
		for _, who := range entrants {
			if byDefault := who.with(who.configurations[0].name); byDefault.key() != who.key() {
				more = append(more, byDefault)
			}
		}
		return append(more, nobodyPeer.with("–"))
	},
	cell: func(c *cell) {
		if c.Family == "postgres" {
			c.SQL("CREATE EXTENSION pg_stat_statements")
		}
		if c.contestant != &nobodyPeer {
			c.start()
			c.warm()
		}
		c.settled()
		time.Sleep(*window) // pauses grow to their full length
		written := c.logWritten()
		asked, began := c.statements(), time.Now()
		time.Sleep(4 * *window)
		asked = c.statements() - asked
		took := time.Since(began).Seconds()
		c.p.add(c.entrant, "statements", float64(asked)/took)
		c.p.add(c.entrant, "log", float64(c.logWritten()-written)/took)
		c.judge(false)
	},
	row: func(s *standings, who entrant) []string {
		return []string{ms(s.of(who, "statements").Median()), count(s.of(who, "log").Median())}
	},
}

// statements is the number of those that clients have sent so far, this one left out.
func (c *cell) statements() int64 {
	c.Helper()
	if c.Family == "postgres" {
		return c.Number("SELECT coalesce(sum(calls), 0)::bigint FROM pg_stat_statements WHERE query NOT LIKE " +
			"'%pg_stat_statements%' AND dbid = (SELECT oid FROM pg_database WHERE datname = current_database())")
	}
	return c.status("Questions") - 1
}

// logWritten is the place that the log has reached.
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
