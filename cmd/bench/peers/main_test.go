package peers

import (
	"cmp"
	"flag"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/cmd/bench/measuring"
)

var (
	hold   = flag.Duration("hold", 5*time.Second, "how long a transaction is held, or a handler hangs")
	tune   = flag.Bool("tune", false, "try all configurations of the peers")
	record = flag.Bool("record", false, "keep the figures in results, and write those into FIGURES.md")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if testing.Short() {
		*hold = 300 * time.Millisecond
	}
	measuring.Main(m, "../../..")
}

// Short names of what measurements share.
type (
	figure                 = measuring.Figure
	figures[K cmp.Ordered] = measuring.Figures[K]
	table                  = measuring.Table
)

var (
	reps, window = measuring.Reps, measuring.Window

	count, milliseconds, scaled = measuring.Count, measuring.Milliseconds, measuring.Scaled

	payload = measuring.Payload
)

const writerCount = measuring.Writers
