package peers

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// latencyMeasure: 8 writers commit a row each, at a common rate.
func latencyMeasure(perSecond int) peerMeasure {
	return peerMeasure{
		name: fmt.Sprintf("latency-%d", perSecond), tune: true,
		title: fmt.Sprintf("From commit to handler at %s commits/s of 8 writers, ms", count(float64(perSecond))),
		head:  append([]string{"p50", "p99", "longest", "commits/s reached"}, wrongs...),
		plot:  dots{axis: "ms", of: []string{"p50", "p99", "longest"}, least: 0.01},
		cell: func(c *cell) {
			c.start()
			c.warm()
			reached := c.pace(writerCount, float64(perSecond), 3**window)
			c.settle(c.Context())
			c.countErrors(false)
			waits := c.ledger.waits()
			c.p.add(c.entrant, "p50", waits.Median())
			c.p.add(c.entrant, "p99", waits.Quantile(0.99))
			c.p.add(c.entrant, "longest", waits.Max())
			c.p.add(c.entrant, "reached", reached)
		},
		row: func(s *standings, who entrant) []string {
			return append([]string{ms(s.of(who, "p50").Median()), ms(s.of(who, "p99").Median()),
				ms(s.of(who, "longest").Max()),
				count(s.of(who, "reached").Median())}, s.outcomes(who).cells()...)
		},
	}
}

// racingMeasure shows what goes wrong: the transactions of 8 writers insert 1 to 3 rows, stay open for 0 to 20 ms, and
// one in ten is rolled back.
var racingMeasure = peerMeasure{
	name: "racing", tune: true,
	title: "8 writers whose transactions overlap (1 to 3 rows, open for 0 to 20 ms, one in ten rolled back)",
	head:  append([]string{"rows committed", "p50, ms", "p99, ms"}, wrongs...),
	plot:  dots{axis: "ms", of: []string{"p50", "p99"}, least: 0.01},
	cell: func(c *cell) {
		c.start()
		c.warm()
		var all sync.WaitGroup
		for writer := range writerCount {
			all.Go(func() {
				for range scaled(4000) / writerCount {
					if err := c.race(writer); err != nil {
						c.Errorf("%s: %v", c.key(), err)
						return
					}
				}
			})
		}
		all.Wait()
		c.settle(c.Context())
		c.countErrors(false)
		c.p.add(c.entrant, "p50", c.ledger.waits().Median())
		c.p.add(c.entrant, "p99", c.ledger.waits().Quantile(0.99))
	},
	row: func(s *standings, who entrant) []string {
		return append([]string{count(float64(s.outcomes(who).Committed)), ms(s.of(who, "p50").Median()),
			ms(s.of(who, "p99").Median())}, s.outcomes(who).cells()...)
	},
}

func (c *cell) race(writer int) error {
	o, err := c.open(c.Context(), writer, 1+rand.IntN(3))
	if err != nil {
		return err
	}
	time.Sleep(rand.N(20 * time.Millisecond))
	if rand.IntN(10) == 0 {
		o.tx.rollback()
		return nil
	}
	return o.commit(c.Context())
}

const firstChanges = 5

// firstMeasure: nothing happens for a second or two, then one row is committed.
var firstMeasure = peerMeasure{
	name: "first", tune: true,
	title: "The first change after one to two quiet seconds, from commit to handler, ms",
	head:  append([]string{"p50", "longest", "changes"}, wrongs...),
	plot:  dots{axis: "ms", of: []string{"wait"}, named: []string{"p50"}, least: 0.01},
	cell: func(c *cell) {
		c.start()
		c.warm()
		for range firstChanges {
			time.Sleep(*window/3 + rand.N(*window/3)) // at any time between two polls
			c.Must(c.write(c.Context(), 0, 1, 0))
			c.settle(c.Context())
		}
		c.countErrors(false)
		for _, wait := range c.ledger.waits() {
			c.p.add(c.entrant, "wait", wait)
		}
	},
	row: func(s *standings, who entrant) []string {
		waits := s.of(who, "wait")
		return append([]string{ms(waits.Median()), ms(waits.Max()), count(float64(len(waits)))},
			s.outcomes(who).cells()...)
	},
}
