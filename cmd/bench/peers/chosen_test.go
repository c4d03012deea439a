package peers

import (
	"fmt"
	"testing"
)

// chosen names each peer's configuration for a measure: the best one of a run of TestPeersTuning, where nothing is
// lost before anything is fast. What is not named has its default. The machine of those runs did other work:
// where two configurations were within a factor of two of each other the simpler one was taken.
var chosen = map[string]string{
	// rowfeed stays at its defaults, and is shown besides as a user would set it who has that need.
	"latency-200 postgres rowfeed":  "wake", // where writers are in the publisher's process
	"latency-200 mysql rowfeed":     "wake",
	"latency-1000 postgres rowfeed": "wake",
	"latency-1000 mysql rowfeed":    "wake",
	"first postgres rowfeed":        "wake",
	"first mysql rowfeed":           "wake",
	"hang postgres rowfeed":         "shards-8", // one of eight shards rests, the others go on
	"hang mysql rowfeed":            "shards-8",

	// On PostgreSQL watermill-sql's ordinary adapters sort all that is left for each batch, and show nothing
	// younger than the oldest open transaction; the queue's do neither.
	"drain postgres watermill-sql":        "queue-topics-8",
	"cost postgres watermill-sql":         "queue",
	"latency-200 postgres watermill-sql":  "queue-1ms",
	"latency-1000 postgres watermill-sql": "queue-1ms",
	"racing postgres watermill-sql":       "queue-1ms",
	"first postgres watermill-sql":        "queue-1ms",
	"idle postgres watermill-sql":         "queue-1ms",
	"held postgres watermill-sql":         "queue-1ms",
	// topics hang together: the one's transaction holds the others' snapshot back
	"hang postgres watermill-sql": "deadline-1s",

	// On MariaDB and MySQL its ordinary adapters lost rows of writers at full speed (cost, latency-1000): committed,
	// below the offset that was acked, never handed over. Most likely a row is inserted after one whose number was
	// drawn later has been read: serializable reads lock what is there. The queue's adapters lost none.
	"drain mysql watermill-sql":        "queue-large",
	"cost mysql watermill-sql":         "queue",
	"latency-200 mysql watermill-sql":  "queue-1ms",
	"latency-1000 mysql watermill-sql": "queue-1ms",
	"racing mysql watermill-sql":       "queue-1ms", // with eight topics each writer has one, and nothing overlaps
	"first mysql watermill-sql":        "queue-1ms",
	"idle mysql watermill-sql":         "queue-1ms",
	"held mysql watermill-sql":         "queue-1ms",
	"hang mysql watermill-sql":         "queue-deadline", // its locks keep writers waiting, but for a second only

	// Rates are bound by how often River fetches, and how many jobs at once.
	"drain postgres river":        "tuned-1",
	"cost postgres river":         "fast", // one COPY in place of an INSERT that answers the job
	"latency-200 postgres river":  "tuned-1",
	"latency-1000 postgres river": "fast",
	"racing postgres river":       "tuned-1",
	"first postgres river":        "tuned-1",
	"idle postgres river":         "tuned-1",
	"held postgres river":         "tuned-1",
	"hang postgres river":         "tuned-1",

	// One of them is as good as another; with this one the server keeps little of its log.
	"drain postgres pglogrepl":        "tuned-1",
	"cost postgres pglogrepl":         "tuned-1",
	"latency-200 postgres pglogrepl":  "tuned-1",
	"latency-1000 postgres pglogrepl": "tuned-1",
	"racing postgres pglogrepl":       "tuned-1",
	"first postgres pglogrepl":        "tuned-1",
	"held postgres pglogrepl":         "tuned-1",
	"hang postgres pglogrepl":         "workers-8", // one of eight rests, and the connection stays alive however long
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

// TestPeersChosen: a choice that names no measure or no configuration would be overlooked.
func TestPeersChosen(t *testing.T) {
	left := map[string]string{}
	for key, name := range chosen {
		left[key] = name
	}
	for _, m := range peerMeasures {
		for _, c := range contestants {
			for _, family := range c.families {
				c.with(chosenFor(m.name, family, c)) // panics
				delete(left, fmt.Sprintf("%s %s %s", m.name, family, c.name))
			}
		}
	}
	for key, name := range left {
		t.Errorf("%q: %q is about nothing that is measured", key, name)
	}
}
