package bench

import (
	"fmt"
	"time"
)

// Plan is what a run is about to do.
type Plan struct {
	// Database is the server's product and version.
	Database string
	// Prefix begins the name of everything that will be made, in Schema where the database
	// has any.
	Schema, Prefix string
	// Tables are those that are filled, with so many rows; rowfeed's own come beside them.
	Tables int
	Rows   int
	// Bytes of the tables at first, without indexes, and of what feeds note of the rows.
	Bytes int64
	// Connections that are used at the same time, at most.
	Connections int
	// Duration is a guess: a slow database takes longer.
	Duration time.Duration
}

const (
	// rowCost is what one row is thought to take where it is written, published or read in
	// bulk. It is the plan's only guess.
	rowCost = 25 * time.Microsecond
	// noteSize is about what a feed keeps for a row, in bytes: its position, key and index
	// entries.
	noteSize = 150
	// settling is how long a quiet process is left alone before it is measured, at most.
	settling = time.Second
)

func (r *run) plan() Plan {
	p := Plan{Database: r.report.Database.Version, Schema: r.schema, Prefix: r.prefix, Rows: r.Rows,
		Connections: r.Writers + 4, Duration: r.whole}
	if r.takes(Writers) {
		p.Tables += len(lanes)
	}
	if r.sharesRows() {
		p.Tables++
	}
	p.Bytes = int64(p.Tables) * int64(r.Rows) * int64(r.Payload+noteSize)
	return p
}

// Size is Bytes for people.
func (p Plan) Size() string {
	mib := float64(p.Bytes) / (1 << 20)
	switch {
	case mib < 1:
		return "less than 1 MiB"
	case mib < 10_000:
		return fmt.Sprintf("about %.0f MiB", mib)
	}
	return fmt.Sprintf("about %.0f GiB", mib/1024)
}

// duration is what all measures are thought to take together.
func (c Config) duration() (sum time.Duration) {
	costs := map[string]time.Duration{
		Writers: c.fillCost()*time.Duration(len(lanes)) + time.Duration(len(lanes)-1)*c.bulk(2) +
			time.Duration(c.Repetitions*len(lanes)*len(writes))*c.laneCost(),
		Drain:   time.Duration(c.Repetitions*len(batches)) * c.drainCost(),
		Pages:   c.bulk(2) + time.Duration(c.Repetitions)*c.bulk(1),
		Consume: c.bulk(2) + time.Duration(c.Repetitions)*c.bulk(1),
		Latency: time.Duration(c.Repetitions) * c.Window,
		Idle:    2 * c.idleCost(),
	}
	for _, m := range c.taken() {
		sum += costs[m]
	}
	if c.sharesRows() {
		sum += c.fillCost()
	}
	return sum
}

// bulk is what it takes to do something to all rows of a table so many times.
func (c Config) bulk(times int) time.Duration { return time.Duration(c.Rows*times) * rowCost }

func (c Config) fillCost() time.Duration { return c.bulk(1) }

// laneCost is that of one window of the writers, and of publishing what they wrote.
func (c Config) laneCost() time.Duration { return c.Window * 3 / 2 }

// drainCost is that of one feed: two backlogs are recorded, and published.
func (c Config) drainCost() time.Duration { return c.bulk(4) }

// idleCost is that of one look at a quiet process.
func (c Config) idleCost() time.Duration {
	return c.settle() + c.Window*time.Duration(c.Repetitions)
}

func (c Config) settle() time.Duration { return min(settling, c.Window*time.Duration(c.Repetitions)) }
