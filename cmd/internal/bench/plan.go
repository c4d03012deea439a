package bench

import (
	"fmt"
	"time"
)

// Plan is what a run is about to do.
type Plan struct {
	// Database is the server's product and version.
	Database string
	// Prefix begins the name of everything that the run makes. Schema is where it makes it; databases without
	// schemas have none.
	Schema, Prefix string
	// Tables is the number of tables that are filled, each with Rows rows. rowfeed's own tables are not counted.
	Tables int
	Rows   int
	// Bytes is the size of the filled tables without indexes, and of what feeds store for their rows.
	Bytes int64
	// Connections is the largest number of connections that are used at the same time.
	Connections int
	// Duration is an estimate. A slow database takes longer.
	Duration time.Duration
}

// storedSize is about what a feed stores for a row, in bytes: its position, key and index entries.
const storedSize = 150

// newPlan returns the plan of a run on the tables with a prefix.
func newPlan(c Config, t *tables, server Server) Plan {
	p := Plan{Database: server.Version, Schema: t.db.schema, Prefix: t.prefix, Rows: c.Rows,
		Connections: c.Writers + 4, Duration: c.duration()}
	if c.takes(Writers) {
		p.Tables += len(captures)
	}
	if c.sharesRows() {
		p.Tables++
	}
	p.Bytes = int64(p.Tables) * int64(c.Rows) * int64(c.Payload+storedSize)
	return p
}

// Size is Bytes in words.
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
