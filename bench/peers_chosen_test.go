package bench

import (
	"fmt"
	"testing"
)

// chosen names each peer's configuration for a measure: the best one of a run of TestPeersTuning, with the reason.
// What is not named has its default.
var chosen = map[string]string{
	// rowfeed stays at its defaults, but where a user who has that need would say so.
	"hang postgres rowfeed": "shards-8", // one of eight shards rests, the others go on
	"hang mysql rowfeed":    "shards-8",

	// watermill-sql on PostgreSQL sorts all that is left for each batch: larger batches, fewer sorts.
	"drain postgres watermill-sql":        "large",
	"cost postgres watermill-sql":         "tuned-1", // bytes are cheaper than JSON
	"latency-200 postgres watermill-sql":  "tuned-2", // who looks more often knows earlier
	"latency-1000 postgres watermill-sql": "tuned-2",
	"racing postgres watermill-sql":       "tuned-2",
	"first postgres watermill-sql":        "tuned-2",
	"idle postgres watermill-sql":         "tuned-1",     // a look every 10 ms; the default's idle cost has the default's latency
	"held postgres watermill-sql":         "queue",       // the order of transactions makes the other adapters wait for the oldest one
	"hang postgres watermill-sql":         "deadline-1s", // a topic of eight would hang with the others: its transaction holds the snapshot back
	"drain mysql watermill-sql":           "large",
	"cost mysql watermill-sql":            "tuned-1",
	"latency-200 mysql watermill-sql":     "tuned-2",
	"latency-1000 mysql watermill-sql":    "tuned-2",
	"racing mysql watermill-sql":          "tuned-2",
	"first mysql watermill-sql":           "tuned-2",
	"idle mysql watermill-sql":            "tuned-1",
	"held mysql watermill-sql":            "tuned-1",
	"hang mysql watermill-sql":            "topics-8",

	"drain postgres river":        "tuned-3", // jobs fetched at once are as many as there are workers
	"cost postgres river":         "fast",
	"latency-200 postgres river":  "tuned-1",
	"latency-1000 postgres river": "tuned-1",
	"racing postgres river":       "tuned-1",
	"first postgres river":        "tuned-1",
	"held postgres river":         "tuned-1",
	"hang postgres river":         "tuned-1",
	"idle postgres river":         "tuned-2",

	"drain postgres pglogrepl":        "tuned-2",
	"cost postgres pglogrepl":         "tuned-2",
	"latency-200 postgres pglogrepl":  "tuned-2",
	"latency-1000 postgres pglogrepl": "tuned-2",
	"racing postgres pglogrepl":       "tuned-2",
	"first postgres pglogrepl":        "tuned-2",
	"held postgres pglogrepl":         "tuned-2",
	"hang postgres pglogrepl":         "beside", // the connection stays alive however long it hangs
	"idle postgres pglogrepl":         "tuned-2",

	"drain postgres naive":        "page-5000",
	"latency-200 postgres naive":  "poll-1ms",
	"latency-1000 postgres naive": "poll-1ms",
	"first postgres naive":        "poll-1ms",
	"drain mysql naive":           "page-5000",
	"latency-200 mysql naive":     "poll-1ms",
	"latency-1000 mysql naive":    "poll-1ms",
	"first mysql naive":           "poll-1ms",
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
