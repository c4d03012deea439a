package peers

import (
	"context"
	"time"
)

// drainLimit ends a drain that takes too long. Its rate is that of the rows handled until then.
const drainLimit = time.Minute

var drainMeasure = peerMeasure{
	name: "drain", tune: true,
	title: "A backlog of 100,000 committed rows, from the consumer's start to the last row handled",
	head:  append([]string{"rows/s", "rowfeed ÷ it"}, wrongs...),
	plot:  dots{axis: "rows/s", of: []string{"rows"}, named: []string{"median"}},
	cell: func(c *cell) {
		c.fill(scaled(100_000))
		ctx, cancel := context.WithTimeout(c.Context(), drainLimit)
		defer cancel()
		started := time.Now()
		c.start()
		done := c.settle(ctx)
		all := c.countErrors(!done && ctx.Err() != nil)
		c.p.add(c.entrant, "rows", float64(all.Handled)/c.ledger.latestAt.Sub(started).Seconds())
	},
	row: func(s *standings, who entrant) []string {
		rate := count(s.of(who, "rows").Median())
		if s.outcomes(who).Stopped > 0 {
			rate += " (stopped after " + drainLimit.String() + ")"
		}
		return append([]string{rate, over(s.of(s.first(&rowfeedPeer), "rows"), s.of(who, "rows"))},
			s.outcomes(who).cells()...)
	},
}
