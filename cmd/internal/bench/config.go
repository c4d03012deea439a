package bench

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
)

// The bounds of a run: above them it would be a load test of the database, not of rowfeed.
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
			Cause: "it publishes what it writes, and was told to publish nothing",
			Next:  "leave --no-publish out: the user's feeds are not touched"}
	}
	return nil
}

func (c Config) takes(measure string) bool {
	return len(c.Measures) == 0 || slices.Contains(c.Measures, measure)
}

// sharesRows tells whether the table is needed that several measures share.
func (c Config) sharesRows() bool { return c.takes(Drain) || c.takes(Pages) || c.takes(Consume) }

// taken are the measures of a run, in their order.
func (c Config) taken() (all []string) {
	for _, m := range Measures {
		if c.takes(m) {
			all = append(all, m)
		}
	}
	return all
}
