package peers

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const (
	reportFile  = "../../../docs/performance/PEERS.md"
	reportBegin = "<!-- The tables and plots from here on are written by TestPeersReport, " +
		"from cmd/bench/peers/results. -->\n"
	reportEnd  = "<!-- Up to here. -->\n"
	plotFolder = "../../../docs/performance"
)

// reported are the servers that a report shows.
var reported = []testdb.Engine{testdb.Postgres15, testdb.Postgres18, testdb.MariaDB, testdb.MySQL}

// TestPeersReport: the tables and plots of docs/performance/PEERS.md are those of the figures in results. After a run
// with -record they are written anew:
//
//	go test -timeout 0 -record -run 'TestPeers$/drain'
//	go test -record -run TestPeersReport
func TestPeersReport(t *testing.T) {
	var report strings.Builder
	for _, m := range peerMeasures {
		m.report(t, &report)
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

// report adds what was recorded of a measure: a table, the plot, and the machine.
func (m peerMeasure) report(t *testing.T, out *strings.Builder) {
	t.Helper()
	all := m.table()
	var drawn []*standings
	var where []string
	for _, e := range reported {
		s, r, ok := m.load(t, e)
		if !ok {
			continue
		}
		s.rows(&all, false)
		drawn = append(drawn, s)
		what := strings.Join(append([]string{r.Day, r.Machine, r.Go}, r.Versions...), ", ")
		if i := slices.IndexFunc(where, func(w string) bool { return strings.HasSuffix(w, what) }); i >= 0 {
			where[i] = strings.Replace(where[i], ": ", "; "+e.Name+" "+r.Server+": ", 1)
			continue
		}
		where = append(where, e.Name+" "+r.Server+": "+what)
	}
	if len(drawn) == 0 {
		return
	}
	name := m.name + ".svg"
	path := filepath.Join(plotFolder, name)
	is, _ := os.ReadFile(path)
	if err := os.MkdirAll(plotFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	keep(t, path, is, m.plot.draw(t, m.title, drawn))
	out.WriteString(all.Markdown())
	fmt.Fprintf(out, "\n![%s](%s)\n\n%s.\n", m.title, name, strings.Join(where, ". "))
}
