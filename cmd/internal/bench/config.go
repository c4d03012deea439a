package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/tap"
)

// The measures, in the order in which they run.
const (
	Writers = "writers"
	Drain   = "drain"
	Pages   = "pages"
	Consume = "consume"
	Latency = "latency"
	Idle    = "idle"
)

// Measures lists all measures.
var Measures = []string{Writers, Drain, Pages, Consume, Latency, Idle}

// The variants of the measures writers and drain.
var (
	// captures are compared by the writers: each has a table of its own. Without capture there is no feed.
	captures = []struct {
		name    string // of the table and of the feed
		capture feedtype.Capture
	}{
		{"none", ""}, {"trigger", feedtype.CaptureTrigger}, {"app", feedtype.CaptureApp},
		{"column", feedtype.CaptureColumn},
	}
	// writes are the statements of the writers' transactions.
	writes = []string{"INSERT", "UPDATE"}
	// batches are the numbers of changes that one transaction of a publisher reads.
	batches = []int{100, 1000, 5000}
)

// Config says what to measure, and with how much load.
type Config struct {
	// URL is the database. A SQLite file must exist.
	URL string
	// DB has the library's settings. Its prefix is ignored: every run has a prefix of its own.
	DB rowfeed.Config
	// Measures are the measures to take. None means all.
	Measures []string
	// Rows is the number of rows of each table, Payload the number of bytes in each row.
	Rows, Payload int
	// Writers is the number of concurrent writers. In each repetition they write for Window.
	Writers     int
	Window      time.Duration
	Repetitions int
	// Rate is the number of commits per second in the measure latency.
	Rate float64
	// Keep leaves the tables in the database.
	Keep bool
	// Planned, if set, is called before the run makes anything. An error of Planned ends the run.
	Planned func(Plan) error
	// Doing, if set, is called at the beginning of each step. Finished is the part of the run before that step, from
	// 0 to 1, by the estimate of Plan.
	Doing func(step string, finished float64)

	tap *tap.Hooks // of the run's own pool; for tests
}

// The bounds of a run. Above them the run would be a load test of the database instead of rowfeed.
const (
	maxRows        = 100_000_000
	maxPayload     = 10_000 // bytes, which a varchar of every database holds
	maxWriters     = 1000
	maxRepetitions = 1000
	maxWindow      = time.Hour
	maxRate        = 100_000
)

func (c Config) validate() error {
	outside := func(flag string, given, least, most any) error {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: flag, Object: "bench",
			Cause: fmt.Sprintf("--%s %v is not between %v and %v", flag, given, least, most),
			Next:  "give a number between them, or leave it out"}
	}
	for _, m := range c.Measures {
		if !slices.Contains(Measures, m) {
			return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "measure", Object: "bench",
				Cause: fmt.Sprintf("there is no measure %q", m),
				Next:  "name some of " + strings.Join(Measures, ", ") + ", or none for all"}
		}
	}
	switch {
	case c.Rows < 1 || c.Rows > maxRows:
		return outside("rows", c.Rows, 1, maxRows)
	case c.Payload < 1 || c.Payload > maxPayload:
		return outside("payload", c.Payload, 1, maxPayload)
	case c.Writers < 1 || c.Writers > maxWriters:
		return outside("writers", c.Writers, 1, maxWriters)
	case c.Repetitions < 1 || c.Repetitions > maxRepetitions:
		return outside("repetitions", c.Repetitions, 1, maxRepetitions)
	case c.Window < time.Millisecond || c.Window > maxWindow:
		return outside("seconds", c.Window.Seconds(), 0.001, maxWindow.Seconds())
	case !(c.Rate >= 0.1 && c.Rate <= maxRate):
		return outside("rate", c.Rate, 0.1, maxRate)
	case c.DB.Replica:
		return &rowfeed.Error{Code: rowfeed.ReadOnly, Object: "bench",
			Cause: "it writes, and the database was opened as a replica",
			Next:  "connect to the primary, without --replica"}
	case c.DB.NoPublish:
		return &rowfeed.Error{Code: rowfeed.Refused, Object: "bench",
			Cause: "it has to publish the rows that it writes, and --no-publish is set",
			Next:  "leave --no-publish out: the bench only publishes feeds of its own"}
	}
	return nil
}

func (c Config) takes(measure string) bool {
	return len(c.Measures) == 0 || slices.Contains(c.Measures, measure)
}

// sharesRows reports whether a measure runs that reads the shared table.
func (c Config) sharesRows() bool { return c.takes(Drain) || c.takes(Pages) || c.takes(Consume) }

// selected returns the measures of a run, in their order.
func (c Config) selected() (all []string) {
	for _, m := range Measures {
		if c.takes(m) {
			all = append(all, m)
		}
	}
	return all
}
