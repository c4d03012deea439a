package main

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/rowfeed/rowfeed/cmd/internal/bench"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

const quickBench = "--rows 300 --writers 2 --seconds 0.01 --repetitions 1 --rate 500/s --payload 10"

// keysOf returns the keys of a JSON value and of the values in it, as "a.b". Of a list it reads the first element.
func keysOf(value any, path string) (keys []string) {
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			keys = append(append(keys, path+name), keysOf(inner, path+name+".")...)
		}
	case []any:
		if len(v) > 0 {
			return keysOf(v[0], path)
		}
	}
	slices.Sort(keys)
	return keys
}

// benchKeys are the keys of a report. Programs rely on them.
const benchKeys = `began consume consume.entries consume.entries_per_second
database database.durable database.kind database.settings database.version
drain drain.again_keys_per_second drain.batch drain.keys drain.new_keys_per_second
idle idle.publisher_statements_per_second idle.seconds idle.with_consumer_statements_per_second
latency latency.commits latency.max_ms latency.p50_ms latency.p99_ms latency.rate latency.reached_per_second
machine machine.arch machine.cpus machine.go machine.host machine.os
options options.measures options.payload options.rate options.repetitions options.rows options.seconds options.writers
pages pages.end_ms pages.entries pages.entries_per_second pages.middle_ms pages.page pages.start_ms
rowfeed rows rows.positions rows.read rows.written took_seconds
writers writers.capture writers.commits_per_second writers.longest_ms writers.ratio writers.ratio_high writers.ratio_low
writers.retries writers.write`

// TestBenchReportHasSameKeysOnEachDatabase: a measure that was left out is null. The bench needs no tables of rowfeed,
// and leaves none.
func TestBenchReportHasSameKeysOnEachDatabase(t *testing.T) {
	testdb.Each(t, func(t *testing.T, e testdb.Engine) {
		db := e.New(t)
		db.Exec(t, "CREATE TABLE t (id int)")
		before := db.Dump(t)
		s := newShell(t)
		s.env["ROWFEED_DB"] = db.URL
		r := s.run(strings.Fields("bench --json " + quickBench)...)
		var report map[string]any
		if err := json.Unmarshal([]byte(r.out), &report); r.code != cli.ExitDone || err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		keys := slices.DeleteFunc(keysOf(report, ""),
			func(k string) bool { return strings.HasPrefix(k, "database.settings.") })
		if got, want := strings.Join(keys, " "), strings.ReplaceAll(benchKeys, "\n", " "); got != want {
			t.Errorf("the keys are\n%s\nwant\n%s", got, want)
		}
		if rows := report["rows"].(map[string]any); rows["written"] != rows["read"] ||
			rows["written"].(float64) < 1200 {
			t.Errorf("rows: %v", rows)
		}
		for _, want := range []string{"rowfeed bench on " +
			e.Family, "makes    rfbench", "5 tables of 300 rows", "loads    the database", "after Ctrl-C"} {
			if !strings.Contains(r.err, want) {
				t.Errorf("stderr lacks %q: %s", want, r.err)
			}
		}
		r = s.run(strings.Fields("bench idle --json " + quickBench)...)
		report = nil
		if err := json.Unmarshal([]byte(r.out), &report); r.code != cli.ExitDone || err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		for _, measure := range bench.Measures {
			if value, there := report[measure]; !there || (value != nil) != (measure == bench.Idle) {
				t.Errorf("%s is %v", measure, value)
			}
		}
		if after := db.Dump(t); after != before {
			t.Errorf("the schema has changed\nbefore: %s\n after: %s", before, after)
		}
	})
}

// TestBenchPrintsKeepsAndCleans: the report has its tables, --keep leaves the tables of the bench, and --clean removes
// them.
func TestBenchPrintsKeepsAndCleans(t *testing.T) {
	s := withFeed(t)
	before := s.ok("status")
	r := s.run(strings.Fields("bench --keep " + quickBench)...)
	if r.code != cli.ExitDone {
		t.Fatalf("bench: %+v", r)
	}
	for _, want := range []string{"SQLite 3", "journal_mode=wal, synchronous=FULL", "commits are safe", "÷ NO CAPTURE",
		"INSERT   trigger", "DRAIN: BATCH", "MS PER 1000 AT THE START", "CONSUME: ENTRIES", "P99, MS",
		"publisher and consumer", "all of them published and read", "left: `rowfeed bench --clean` removes them"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the output lacks %q: %s", want, r.out)
		}
	}
	if !strings.Contains(r.err, "as --keep asks") {
		t.Errorf("stderr: %s", r.err)
	}
	var cleaned bench.Cleaned
	a, _ := quietApp(t)
	var out bytes.Buffer
	a.Stdout, a.JSON = &out, true
	if err := (&benchOptions{clean: true, patience: 1}).run(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out.Bytes(), &cleaned); err != nil || len(cleaned.Removed) != 1 ||
		!strings.HasPrefix(cleaned.Removed[0].Owner, "process ") || cleaned.AtWork == nil {
		t.Errorf("cleaned: %s", &out)
	}
	s.prints("bench --clean", "sqlite:rowfeed.db: there are no tables of earlier benches\n")
	s.prints("bench --clean --json", "{\n  \"removed\": [],\n  \"at_work\": []\n}\n")
	if after := s.ok("status"); after != before {
		t.Errorf("the user's feed has changed\nbefore: %s\n after: %s", before, after)
	}
}

// TestInterruptedBenchLeavesNothing: the bench removes its tables and says so.
func TestInterruptedBenchLeavesNothing(t *testing.T) {
	s := withFeed(t)
	a, errs := quietApp(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	a.OnBench = func(what string) {
		if strings.HasPrefix(what, "writers: capture app") {
			interrupt()
		}
	}
	root := newRoot(a)
	root.SetArgs(strings.Fields("bench " + quickBench))
	_, err := root.ExecuteContextC(ctx)
	if code := a.Report(ctx, err); code != cli.ExitFailed ||
		!strings.HasSuffix(errs.String(), "rowfeed: what the bench had made is removed\nrowfeed: interrupted\n") {
		t.Errorf("exit code %d, stderr %s", code, errs)
	}
	s.prints("bench --clean", "sqlite:rowfeed.db: there are no tables of earlier benches\n")
}
