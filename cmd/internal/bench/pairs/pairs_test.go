package pairs

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// scripts/bench.sh sets these flags.
var (
	base     = flag.String("base", "", "`binary` of the base commit")
	baseName = flag.String("base-name", "", "its `commit`")
	after    = flag.String("new", "", "`binary` of the working tree")
	newName  = flag.String("new-name", "", "its `commit`")
	pairs    = flag.Int("pairs", 7, "runs of each of the two")
	to       = flag.String("to", "", "`file` for the table")
	asJSON   = flag.Bool("json", false, "write JSON, with the figures of each pair, instead of a table")
)

func TestMain(m *testing.M) {
	flag.Parse()
	testdb.Main(m)
}

// TestPairs compares two builds on each engine. It is a tool rather than a test: it does not fail if a build is slow.
func TestPairs(t *testing.T) {
	if *base == "" || *after == "" {
		t.Skip("scripts/bench.sh runs it, with two builds")
	}
	c := &comparison{Pairs: *pairs}
	testdb.Quick(t) // ROWFEED_TEST_ENGINES alone says what is measured
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		c.run(t, e, build{*baseName, *base}, build{*newName, *after}, os.Stderr)
	})
	out, err := os.Create(*to)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if !*asJSON {
		err = c.print(out)
	} else {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(c)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// run takes all measures on an engine. The server is a new one, with the durability of production.
func (c *comparison) run(t *testing.T, e testdb.Engine, base, fresh build, progress io.Writer, more ...string) {
	c.Base, c.New = base.name, fresh.name
	var db *testdb.Database
	if e.HasServer() {
		db = e.Dedicated(t, e.Production()...).NewDatabase(t)
	} else {
		db = e.New(t)
		db.Exec(t, "PRAGMA journal_mode = WAL") // makes the file
	}
	folder := t.TempDir()
	// All pairs of a measure run one after the other, so that both builds find the same state: a file that has grown, a
	// disk that is still being written.
	for _, m := range measures {
		for pair := range c.Pairs {
			before, err := base.run(t.Context(), m, folder, db.URL, more...)
			if err != nil && !errors.Is(err, errNoMeasure) {
				t.Fatal(err)
			}
			after, err := fresh.run(t.Context(), m, folder, db.URL, more...)
			if err != nil {
				t.Fatal(err)
			}
			line := fmt.Sprintf("%s, pair %d of %d, %s:", e.Name, pair+1, c.Pairs, m.name)
			for _, ratio := range c.add(e.Name, before, after) {
				line += fmt.Sprintf(" %.2f", ratio)
			}
			if before == nil {
				line += " not in " + base.name
			}
			fmt.Fprintln(progress, line)
		}
	}
}

func TestComparisonPrintsMedianRatios(t *testing.T) {
	c := &comparison{Base: "1111111 before", New: "2222222 after", Pairs: 3}
	for i, pair := range [][2]float64{{100, 90}, {200, 220}, {400, 380}} {
		speed := func(side int) []figure {
			return []figure{{name: "consume", unit: "entries/s", value: pair[side] * 1000},
				{name: "idle", unit: "statements/s", value: pair[side] / 10, less: true}}
		}
		ratios := c.add("sqlite", speed(0), speed(1))
		if want := [][]float64{{0.9, 10. / 9}, {1.1, 10. / 11}, {0.95, 1 / 0.95}}[i]; fmt.Sprintf("%.3f",
			ratios) != fmt.Sprintf("%.3f", want) {
			t.Errorf("pair %d: %.3f, want %.3f", i, ratios, want)
		}
	}
	c.add("mariadb", nil, []figure{{name: "consume", unit: "entries/s", value: 5000}})
	var out strings.Builder
	if err := c.print(&out); err != nil {
		t.Fatal(err)
	}
	want := `base: 1111111 before
new:  2222222 after
medians (pairs: 3); ratio: speed of new ÷ speed of base, above 1 is faster

measure  engine   base         new      unit          ratio  of the pairs
consume  sqlite   200,000      220,000  entries/s     0.95   0.90 to 1.10  slower
idle     sqlite   20.00        22.00    statements/s  1.05   0.91 to 1.11
consume  mariadb  not in base  5,000    entries/s     –      –
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
}

// TestBuildIsComparedWithItself runs on SQLite, with small sizes.
func TestBuildIsComparedWithItself(t *testing.T) {
	testdb.SQLite.Require(t)
	b := build{"itself", filepath.Join(t.TempDir(), "rowfeed")}
	if out, err := exec.Command("go", "build", "-o", b.binary,
		"github.com/rowfeed/rowfeed/cmd/rowfeed").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := &comparison{Pairs: 1}
	c.run(t, testdb.SQLite, b, b, io.Discard, "--rows", "300", "--seconds", "0.01", "--rate", "500/s")
	var names []string
	for _, s := range c.Figures {
		names = append(names, s.Measure)
		if len(s.Base) != 1 || len(s.New) != 1 || len(s.Ratios) != 1 {
			t.Errorf("%+v", s)
		}
	}
	want := []string{"publish first, batches of 100", "publish again, batches of 100", "publish first, batches of 1000",
		"publish again, batches of 1000", "publish first, batches of 5000", "publish again, batches of 5000",
		"pages of 1000", "consume", "commit to handler, median", "commit to handler, p99", "idle publisher",
		"idle publisher and consumer"}
	if !slices.Equal(names, want) {
		t.Errorf("the measures are %q, want %q", names, want)
	}
	if _, err := b.run(t.Context(), measure{name: "later"}, t.TempDir(),
		"sqlite:absent.db"); !errors.Is(err, errNoMeasure) {
		t.Errorf("a build without the measure returned %v", err)
	}
	if _, err := b.run(t.Context(), measures[0], t.TempDir(), "sqlite:absent.db"); err == nil ||
		!strings.Contains(err.Error(), "there is no file absent.db") {
		t.Errorf("a database that does not exist returned %v", err)
	}
}
