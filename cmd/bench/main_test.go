package bench

import (
	"cmp"
	"flag"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/bench/measuring"
)

var take = flag.Bool("figures", false, "run the measures; all of them need more than an hour")

// TestMain measures only with -figures, so that `go test ./...` stays quick.
func TestMain(m *testing.M) {
	if flag.Parse(); !*take {
		return
	}
	measuring.Main(m, "../..")
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
