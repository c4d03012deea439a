package bench

// costMeasure: a transaction is BEGIN, an INSERT, what the peer needs besides, and COMMIT. The naive
// poller needs nothing, so that its writers without a consumer are the plain ones.
var costMeasure = peerMeasure{
	name: "cost", tune: true,
	title: "Commits/s of 8 writers, each transaction one row of 200 bytes and what the peer needs",
	head:  append([]string{"nobody reads", "÷ plain", "beside its consumer", "÷ plain without", "rowfeed ÷ it"}, wrongs...),
	run: func(p *comparison) {
		for _, who := range p.entrants {
			if who.message {
				who.alone = true
				p.entrants = append(p.entrants, who)
			}
		}
		p.turns(func(c *cell) {
			c.rush(*window / 10)
			c.p.add(c.entrant, "quiet", c.rush(*window))
			c.start()
			c.settle(c.Context())
			c.p.add(c.entrant, "beside", c.rush(*window))
			c.settle(c.Context())
			c.judge(false)
		})
		p.rows(func(who entrant) []string {
			plain := p.of(p.first(&naivePeer), "quiet")
			return append([]string{
				count(p.of(who, "quiet").median()), over(p.of(who, "quiet"), plain),
				count(p.of(who, "beside").median()), over(p.of(who, "beside"), plain),
				over(p.of(p.first(&rowfeedPeer), "beside"), p.of(who, "beside")),
			}, p.went(who).cells()...)
		})
	},
}
