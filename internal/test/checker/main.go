// Checker follows a feed over HTTP and judges what it received by the table as it
// stands in the end. It is the judge of the racing tests, and shares no code with
// rowfeed.
//
//	checker --feed-url http://127.0.0.1:8080/_feeds/fetch/kv --table final.ndjson --key id
//
// It follows from the beginning until it gets SIGTERM or SIGINT (or, with --quiet,
// until nothing has come for so long), reads on to the head, then reads the rows of
// the table, one JSON object a line, from the file --table, which need not be there
// before. Its last line on stdout begins with "verdict: "; the exit code is 0 when
// there was no fault, 1 when there was one, 2 when it could not judge.
//
// With --log it writes down what it received; without --feed-url it judges such a
// log again.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/rowfeed/rowfeed/internal/test/checker/judge"
)

func main() {
	var (
		feedURL  = flag.String("feed-url", "", "`URL` of the feed's pages; empty: judge the log")
		logPath  = flag.String("log", "", "`file` for what was received")
		table    = flag.String("table", "", "`file` with the table's rows in the end, one JSON object a line")
		key      = flag.String("key", "id", "key `columns`, separated by commas")
		writer   = flag.String("writer", "", "`column` of the writer of an insert-only row")
		number   = flag.String("number", "", "`column` of that writer's count")
		after    = flag.String("after", "", "`column` of the key of a row that had been committed before")
		limit    = flag.Int("limit", 100, "entries to ask for at once")
		patience = flag.Duration("patience", time.Minute, "how long the server may go without an answer")
		quiet    = flag.Duration("quiet", 0, "end when nothing new has come for so long")
	)
	flag.Parse()
	rules := judge.Rules{Key: strings.Split(*key, ","), Writer: *writer, Number: *number, After: *after}
	verdict, err := run(*feedURL, *logPath, *table, rules,
		judge.Follower{Limit: *limit, Patience: *patience, Quiet: *quiet})
	if err != nil {
		fmt.Printf("verdict: none: %s\n", strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(2)
	}
	for _, fault := range verdict.Faults {
		fmt.Println(fault)
	}
	fmt.Printf("verdict: %d faults; %d entries, %d of them in a causal order, %d keys\n",
		len(verdict.Faults), verdict.Entries, verdict.Ordered, verdict.Keys)
	if len(verdict.Faults) > 0 {
		os.Exit(1)
	}
}

func run(feedURL, logPath, tablePath string, rules judge.Rules, follower judge.Follower) (judge.Verdict, error) {
	var log []judge.Entry
	var err error
	if feedURL == "" {
		log, err = readFile[judge.Entry](logPath)
	} else {
		follower.URL = feedURL
		log, err = follow(follower, logPath)
	}
	if err != nil {
		return judge.Verdict{}, err
	}
	rows, err := readFile[json.RawMessage](tablePath)
	if err != nil {
		return judge.Verdict{}, err
	}
	return judge.Judge(log, rows, rules), nil
}

// follow reads the feed until a signal, and keeps a log of it.
func follow(follower judge.Follower, logPath string) (log []judge.Entry, err error) {
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	write := func(judge.Entry) error { return nil }
	if logPath != "" {
		file, err := os.Create(logPath)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		buffer := bufio.NewWriter(file)
		defer buffer.Flush()
		encoder := json.NewEncoder(buffer)
		write = func(e judge.Entry) error { return encoder.Encode(e) }
	}
	follower.Got = func(e judge.Entry) error {
		log = append(log, e)
		return write(e)
	}
	stats, err := follower.Follow(context.Background(), told.Done())
	fmt.Printf("followed: %d pages, %d failures to answer\n", stats.Pages, stats.Failures)
	return log, err
}

func readFile[T any](path string) ([]T, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all, err := judge.ReadLines[T](bufio.NewReader(file))
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return all, err
}
