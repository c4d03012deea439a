package bench

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

var (
	reps   = flag.Int("reps", 3, "repetitions of each figure")
	window = flag.Duration("window", 3*time.Second, "how long writers run for one figure")
	hold   = flag.Duration("hold", 5*time.Second, "how long a transaction is held, or a handler hangs, among peers")
	tune   = flag.Bool("tune", false, "try all configurations of the peers")
	record = flag.Bool("record", false, "keep the figures of peers in results, and write those into docs/PERFORMANCE.md")
)

func TestMain(m *testing.M) {
	flag.Parse()
	setDefault("ROWFEED_TEST_ENGINES", "sqlite,postgres15,mariadb")
	// scripts/setup.sh unpacks servers beside the library's go.mod, not beside this one.
	if folder, err := filepath.EvalSymlinks("../.engines"); err == nil {
		if folder, err = filepath.Abs(folder); err == nil {
			setDefault("ROWFEED_ENGINES_DIR", folder)
		}
	}
	if testing.Short() {
		*reps, *window, *hold = 1, 100*time.Millisecond, 300*time.Millisecond
	}
	testdb.Main(m)
}

func setDefault(variable, value string) {
	if os.Getenv(variable) == "" {
		_ = os.Setenv(variable, value)
	}
}

// scaled makes a size small when the run is only to show that it works.
func scaled(n int) int {
	if testing.Short() {
		return max(n/100, 1)
	}
	return n
}
