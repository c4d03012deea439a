package peers

import (
	"fmt"
	"testing"
)

// chosen names the configuration of each peer for a measure: the best one of a run of TestPeersTuning. Losing no row
// counts before speed. A peer that is not named has its defaults. The machine of those runs also did other work, so if
// two configurations were within a factor of two, the simpler one was chosen.
var chosen = map[string]string{
	// rowfeed has its defaults. A second row shows it with the settings for the need of the measure.
	"latency-200 postgres rowfeed":  "wake", // the writers are in the publisher's process
	"latency-200 mysql rowfeed":     "wake",
	"latency-1000 postgres rowfeed": "wake",
	"latency-1000 mysql rowfeed":    "wake",
	"first postgres rowfeed":        "wake",
	"first mysql rowfeed":           "wake",
	"hang postgres rowfeed":         "shards-8", // one of eight shards rests, the others continue
	"hang mysql rowfeed":            "shards-8",

	// On PostgreSQL, the ordinary adapters of watermill-sql sort all remaining rows for each batch, and deliver nothing
	// younger than the oldest open transaction. The adapters of its queue do neither.
	"drain postgres watermill-sql":        "queue-topics-8",
	"cost postgres watermill-sql":         "queue",
	"latency-200 postgres watermill-sql":  "queue-1ms",
	"latency-1000 postgres watermill-sql": "queue-1ms",
	"racing postgres watermill-sql":       "queue-1ms",
	"first postgres watermill-sql":        "queue-1ms",
	"idle postgres watermill-sql":         "queue-1ms",
	"held postgres watermill-sql":         "queue-1ms",
	// the transaction of one topic holds back the snapshot of the others
	"hang postgres watermill-sql": "deadline-1s",

	// On MariaDB and MySQL its ordinary adapters lost rows of writers at full speed (cost, latency-1000): rows that
	// were committed below the acknowledged offset were never delivered. Most likely a row was inserted after a row
	// with a higher number had been read: serializable reads only lock existing rows. The adapters of the queue lost
	// none.
	"drain mysql watermill-sql":        "queue-large",
	"cost mysql watermill-sql":         "queue",
	"latency-200 mysql watermill-sql":  "queue-1ms",
	"latency-1000 mysql watermill-sql": "queue-1ms",
	"racing mysql watermill-sql":       "queue-1ms", // eight topics: no transactions overlap
	"first mysql watermill-sql":        "queue-1ms",
	"idle mysql watermill-sql":         "queue-1ms",
	"held mysql watermill-sql":         "queue-1ms",
	"hang mysql watermill-sql":         "queue-deadline", // its locks block writers, but for at most a second

	// The rate is limited by how often River fetches, and how many jobs it fetches at once.
	"drain postgres river":        "tuned-1",
	"cost postgres river":         "fast", // one COPY instead of an INSERT that returns the job
	"latency-200 postgres river":  "tuned-1",
	"latency-1000 postgres river": "fast",
	"racing postgres river":       "tuned-1",
	"first postgres river":        "tuned-1",
	"idle postgres river":         "tuned-1",
	"held postgres river":         "tuned-1",
	"hang postgres river":         "tuned-1",

	// All configurations are equal here. With this one the server keeps little of its log.
	"drain postgres pglogrepl":        "tuned-1",
	"cost postgres pglogrepl":         "tuned-1",
	"latency-200 postgres pglogrepl":  "tuned-1",
	"latency-1000 postgres pglogrepl": "tuned-1",
	"racing postgres pglogrepl":       "tuned-1",
	"first postgres pglogrepl":        "tuned-1",
	"held postgres pglogrepl":         "tuned-1",
	"hang postgres pglogrepl":         "workers-8", // one of eight rests, and the connection stays alive
	"idle postgres pglogrepl":         "tuned-1",

	"drain postgres naive":        "page-5000",
	"latency-200 postgres naive":  "poll-1ms",
	"latency-1000 postgres naive": "poll-1ms",
	"first postgres naive":        "poll-1ms",
	"idle postgres naive":         "poll-1ms",
	"drain mysql naive":           "page-5000",
	"latency-200 mysql naive":     "poll-1ms",
	"latency-1000 mysql naive":    "poll-1ms",
	"first mysql naive":           "poll-1ms",
	"idle mysql naive":            "poll-1ms",
}

func chosenFor(measure, family string, c *contestant) string {
	if name := chosen[fmt.Sprintf("%s %s %s", measure, family, c.name)]; name != "" {
		return name
	}
	return c.configurations[0].name
}

// TestPeersChosen: a choice must name a measure and a configuration that exist.
func TestPeersChosen(t *testing.T) {
	left := map[string]string{}
	for key, name := range chosen {
		left[key] = name
	}
	for _, m := range peerMeasures {
		for _, c := range contestants {
			for _, family := range c.families {
				c.with(chosenFor(m.name, family, c)) // panics if there is none
				delete(left, fmt.Sprintf("%s %s %s", m.name, family, c.name))
			}
		}
	}
	for key, name := range left {
		t.Errorf("%q: %q is about nothing that is measured", key, name)
	}
}
