package peers

// costMeasure: a transaction is BEGIN, an INSERT, what the peer needs, and COMMIT. The naive poller needs nothing, so
// its writers without a consumer are the baseline.
var costMeasure = peerMeasure{
	name: "cost", tune: true,
	title: "Commits/s of 8 writers, each transaction one row of 200 bytes and what the peer needs",
	head: append([]string{"no consumer", "÷ plain", "with its consumer", "÷ plain without", "rowfeed ÷ it"},
		wrongs...),
	plot: dots{axis: "commits/s of 8 writers", of: []string{"quiet", "beside"},
		named: []string{"no consumer", "with its consumer"}},
	also: func(entrants []entrant) (alone []entrant) {
		for _, who := range entrants {
			if who.message {
				who.alone = true
				alone = append(alone, who)
			}
		}
		return alone
	},
	cell: func(c *cell) {
		c.rush(*window / 10)
		c.p.add(c.entrant, "quiet", c.rush(*window))
		c.start()
		c.settle(c.Context())
		c.p.add(c.entrant, "beside", c.rush(*window))
		c.settle(c.Context())
		c.countErrors(false)
	},
	row: func(s *standings, who entrant) []string {
		plain := s.of(s.first(&naivePeer), "quiet")
		return append([]string{
			count(s.of(who, "quiet").Median()), over(s.of(who, "quiet"), plain),
			count(s.of(who, "beside").Median()), over(s.of(who, "beside"), plain),
			over(s.of(s.first(&rowfeedPeer), "beside"), s.of(who, "beside")),
		}, s.outcomes(who).cells()...)
	},
}
