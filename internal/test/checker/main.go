// Checker follows a feed over HTTP and compares what it received with the rows of the table at the end. The
// racing tests use it. It shares no code with rowfeed.
//
//	checker --feed-url http://127.0.0.1:8080/_feeds/fetch/kv --table final.ndjson --key id
//
// It follows from the beginning until it gets SIGTERM or SIGINT (or, with --quiet, until no entry has arrived for so
// long) and reads on to the head. Then it reads the rows of the table, one JSON object per line, from the file --table,
// which does not have to exist before. Its last line on stdout begins with "verdict: ". The exit code is 0 without
// faults, 1 with faults, 2 if the comparison was not possible.
//
// With --log it stores what it received. Without --feed-url it checks such a log again.
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

	"github.com/rowfeed/rowfeed/internal/test/checker/feedlog"
)

func main() {
	var (
		feedURL  = flag.String("feed-url", "", "`URL` of the feed's pages; empty: check the log")
		logPath  = flag.String("log", "", "`file` for what was received")
		table    = flag.String("table", "", "`file` with the table's rows at the end, one JSON object per line")
		key      = flag.String("key", "id", "key `columns`, separated by commas")
		writer   = flag.String("writer", "", "`column` of the writer of an insert-only row")
		number   = flag.String("number", "", "`column` of that writer's count")
		after    = flag.String("after", "", "`column` of the key of a row that had been committed before")
		limit    = flag.Int("limit", 100, "entries to ask for at once")
		patience = flag.Duration("patience", time.Minute, "how long the server may go without an answer")
		quiet    = flag.Duration("quiet", 0, "end when no entry has arrived for so long")
	)
	flag.Parse()
	rules := feedlog.Rules{Key: strings.Split(*key, ","), Writer: *writer, Number: *number, After: *after}
	verdict, err := run(*feedURL, *logPath, *table, rules,
		feedlog.Follower{Limit: *limit, Patience: *patience, Quiet: *quiet})
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

func run(feedURL, logPath, tablePath string, rules feedlog.Rules, follower feedlog.Follower) (feedlog.Verdict, error) {
	var log []feedlog.Entry
	var err error
	if feedURL == "" {
		log, err = readFile[feedlog.Entry](logPath)
	} else {
		follower.URL = feedURL
		log, err = follow(follower, logPath)
	}
	if err != nil {
		return feedlog.Verdict{}, err
	}
	rows, err := readFile[json.RawMessage](tablePath)
	if err != nil {
		return feedlog.Verdict{}, err
	}
	return feedlog.Check(log, rows, rules), nil
}

// follow reads the feed until a signal, and keeps a log of it.
func follow(follower feedlog.Follower, logPath string) (log []feedlog.Entry, err error) {
	told, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	write := func(feedlog.Entry) error { return nil }
	if logPath != "" {
		file, err := os.Create(logPath)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		buffer := bufio.NewWriter(file)
		defer buffer.Flush()
		encoder := json.NewEncoder(buffer)
		write = func(e feedlog.Entry) error { return encoder.Encode(e) }
	}
	follower.Got = func(e feedlog.Entry) error {
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
	all, err := feedlog.ReadLines[T](bufio.NewReader(file))
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return all, err
}
