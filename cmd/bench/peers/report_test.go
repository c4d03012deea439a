package peers

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const (
	reportFile  = "FIGURES.md"
	reportBegin = "<!-- The tables and plots from here on are written by TestPeersReport, " +
		"from results. -->\n"
	reportEnd  = "<!-- Up to here. -->\n"
	plotFolder = "../../../docs/performance"
)

// reported are the servers that a report shows.
var reported = []testdb.Engine{testdb.Postgres15, testdb.Postgres18, testdb.MariaDB, testdb.MySQL}

// TestPeersReport: the tables and plots of FIGURES.md are those of the figures in results. After a run
// with -record they are written anew:
//
//	go test -timeout 0 -record -run 'TestPeers$/drain'
//	go test -record -run TestPeersReport
func TestPeersReport(t *testing.T) {
	var report strings.Builder
	measured := map[string][]string{}
	for _, m := range peerMeasures {
		m.report(t, &report, measured)
	}
	for _, where := range slices.Sorted(maps.Keys(measured)) {
		fmt.Fprintf(&report, "\n%s: %s.\n", where, strings.Join(measured[where], ", "))
	}
	text, err := os.ReadFile(reportFile)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := bytes.Index(text, []byte(reportBegin)), bytes.Index(text, []byte(reportEnd))
	if begin < 0 || end < begin {
		t.Fatalf("%s lacks the marks of the report: %q and %q", reportFile, reportBegin, reportEnd)
	}
	want := slices.Concat(text[:begin+len(reportBegin)], []byte(report.String()), text[end:])
	keep(t, reportFile, text, want)
}

// keep writes a file with -record. Otherwise it complains if the file differs.
func keep(t *testing.T, path string, is, want []byte) {
	t.Helper()
	if bytes.Equal(is, want) {
		return
	}
	if !*record {
		t.Errorf("%s is not what results say: go test -record -run TestPeersReport", path)
		return
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

// report adds the table of a measure, draws its plot, and notes where each of its servers was measured.
func (m peerMeasure) report(t *testing.T, out *strings.Builder, measured map[string][]string) {
	t.Helper()
	all := m.table()
	var drawn []*standings
	for _, e := range reported {
		s, r, ok := m.load(t, e)
		if !ok {
			continue
		}
		s.rows(&all, false)
		drawn = append(drawn, s)
		where := strings.Join(append([]string{e.Name + " " + r.Server, r.Day, r.Machine, r.Go}, r.Versions...), ", ")
		measured[where] = append(measured[where], m.name)
	}
	if len(drawn) == 0 {
		return
	}
	path := filepath.Join(plotFolder, m.name+".svg")
	is, _ := os.ReadFile(path)
	if err := os.MkdirAll(plotFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	keep(t, path, is, m.plot.draw(t, m.title, drawn))
	out.WriteString(all.Markdown())
}
