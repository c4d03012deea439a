package peers

import (
	"fmt"
	"sync"
	"time"
)

// The writers beside an open transaction: their number, and their commits per second together.
const (
	besideWriters   = 4
	besidePerSecond = 100
)

// withStuck has writers commit while something is stuck for the time -hold, and for a while before and after.
func (c *cell) withStuck(stuck func()) {
	c.Helper()
	lead := *hold / 5
	var writing sync.WaitGroup
	defer writing.Wait() // also if stuck fails
	writing.Go(func() { c.pace(besideWriters, besidePerSecond, *hold+2*lead) })
	time.Sleep(lead)
	stuck()
	writing.Wait()
	c.settle(c.Context())
}

// heldMeasure: a transaction has written and stays open. The figures are those of all other writers.
var heldMeasure = peerMeasure{
	name: "held", tune: true,
	title: "A foreign transaction is held open for 5 s (-hold): " +
		"everyone else's longest delivery, and longest transaction",
	head: append([]string{"it has written what they write: delivery, ms", "÷ hold", "transaction, ms",
		"it has written to another table: delivery, ms", "÷ hold", "transaction, ms"}, wrongs...),
	plot: dots{axis: "longest delivery, ms", of: []string{"same", "other"},
		named: []string{"it has written what they write", "another table"}, least: 0.1},
	cell: func(c *cell) {
		c.SQL("CREATE TABLE others (id bigint PRIMARY KEY)")
		c.start()
		for _, where := range []string{"same", "other"} {
			c.warm()
			c.withStuck(func() { c.hold(where) })
			c.p.add(c.entrant, where, c.ledger.waits().Max())
			c.p.add(c.entrant, where+" write", milliseconds(c.ledger.longest))
		}
		c.countErrors(false)
	},
	row: func(s *standings, who entrant) (cells []string) {
		for _, where := range []string{"same", "other"} {
			waited := s.of(who, where).Median()
			cells = append(cells, ms(waited), fmt.Sprintf("%.3f", waited/milliseconds(*hold)),
				ms(s.of(who, where+" write").Median()))
		}
		return append(cells, s.outcomes(who).cells()...)
	},
}

// hold is the open transaction.
func (c *cell) hold(where string) {
	c.Helper()
	if where == "same" {
		o, err := c.open(c.Context(), holder, 1)
		c.Must(err)
		time.Sleep(*hold)
		c.Must(o.commit(c.Context()))
		return
	}
	tx, err := c.users.begin(c.Context())
	c.Must(err)
	defer tx.rollback()
	c.Must(tx.do(c.Context(), "INSERT INTO others VALUES (1)"))
	time.Sleep(*hold)
	c.Must(tx.commit(c.Context()))
}

// hangMeasure: the handler hangs once, with one row, and ignores deadlines.
var hangMeasure = peerMeasure{
	name: "hang", tune: true,
	title: "A handler hangs with one row for 5 s (-hold)",
	head: append([]string{"of the rows committed meanwhile so many were handled meanwhile",
		"longest delivery of the others, ms", "longest transaction of a writer, ms",
		"the row was handed over, times"}, wrongs...),
	plot: dots{axis: "longest delivery of the others, ms", of: []string{"longest"}, least: 0.1},
	cell: func(c *cell) {
		c.start()
		c.warm()
		c.withStuck(func() {
			begun, release := c.ledger.arm(0)
			defer release()
			select {
			case <-begun:
			case <-time.After(time.Minute):
				c.Fatalf("%s has not handed the row over", c.key())
			}
			began := time.Now()
			time.Sleep(*hold)
			committed, handled := c.ledger.handledBy(began, time.Now())
			c.p.add(c.entrant, "share", float64(handled)/float64(max(committed, 1)))
		})
		c.countErrors(false)
		c.p.add(c.entrant, "longest", c.ledger.waits().Max())
		c.p.add(c.entrant, "write", milliseconds(c.ledger.longest))
		c.p.add(c.entrant, "times", float64(c.ledger.hang.times))
	},
	row: func(s *standings, who entrant) []string {
		return append([]string{fmt.Sprintf("%.0f %%", 100*s.of(who, "share").Median()),
			ms(s.of(who, "longest").Median()),
			ms(s.of(who, "write").Median()), count(s.of(who, "times").Max())}, s.outcomes(who).cells()...)
	},
}
