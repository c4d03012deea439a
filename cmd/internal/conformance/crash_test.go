package conformance

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// What the child processes run: one call of the library each, killed before the
// statement that the parent names.
func init() {
	for name, call := range map[string]func(context.Context, *rowfeed.DB) error{
		"publish": func(ctx context.Context, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "kv")
			if err == nil {
				_, err = f.Publish(ctx)
			}
			return err
		},
		"add": func(ctx context.Context, rf *rowfeed.DB) error {
			_, err := rf.AddFeed(ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: feedtype.Capture(os.Getenv("CAPTURE"))}, nil)
			return err
		},
		"reshard": func(ctx context.Context, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "kv")
			if err != nil {
				return err
			}
			shards, err := strconv.Atoi(os.Getenv("SHARDS"))
			if err == nil {
				_, err = f.Admin().Reshard(ctx, shards, nil)
			}
			return err
		},
		"backfill": func(ctx context.Context, rf *rowfeed.DB) error {
			f, err := rf.AddFeed(ctx, backfillSpec(), nil)
			if err == nil {
				_, err = f.Admin().BackFill(ctx, nil)
			}
			return err
		},
		"drop": func(ctx context.Context, rf *rowfeed.DB) error { return rf.DropFeed(ctx, "kv") },
	} {
		testdb.RegisterChild(name, func() {
			if err := crashing(call); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		})
	}
}

func crashing(call func(context.Context, *rowfeed.DB) error) error {
	return crashingOn(func(ctx context.Context, rf *rowfeed.DB, _ *sql.DB) error { return call(ctx, rf) })
}

func crashingOn(call func(context.Context, *rowfeed.DB, *sql.DB) error) error {
	n, err := strconv.ParseInt(os.Getenv("N"), 10, 64)
	if err != nil {
		return err
	}
	url := os.Getenv("URL")
	var params []string
	if strings.HasPrefix(url, "mysql:") {
		params = []string{"charset=utf8mb4"} // as in cmd/internal/open: triggers remember it
	}
	pool, err := testdb.OpenURL(url, testdb.BlockAt(n), params...)
	if err != nil {
		return err
	}
	d, err := open.Dialect(url)
	if err != nil {
		return err
	}
	ctx := context.Background()
	rf, err := rowfeed.Open(ctx, pool, d, &rowfeed.Config{BatchSize: 2})
	if err != nil {
		return err
	}
	return call(ctx, rf, pool)
}

// killed runs a child and kills it before its n-th statement, which it answers (without
// its number: the same statement may come again); "" when the child came to its end.
func (x *env) killed(child string, n int, more ...string) (before string) {
	x.Helper()
	ctx, cancel := context.WithTimeout(x.ctx, patience())
	defer cancel()
	c := testdb.CrashChild(x.T, child, append(more, "URL="+x.db.URL, "N="+strconv.Itoa(n), "CAPTURE="+string(x.capture))...)
	blocked := c.WaitMarker(ctx)
	c.Kill()
	if !blocked {
		return ""
	}
	_, statement, _ := strings.Cut(strings.TrimSpace(c.Output()), ": ")
	return statement
}

// kills tells before which statements a crash test kills: from the first, every step.
// Every one with ROWFEED_TEST_EVERY_KILL=1, as when mutants are tried; else one of four
// from a start that the seed gives.
func (x *env) kills() (first, step int) {
	if os.Getenv("ROWFEED_TEST_EVERY_KILL") == "1" {
		return 1, 1
	}
	return 1 + int(raceSeed(x.T)%4), 4
}

// TestPublishKilledAtEveryStep (M8): a publisher is killed between any two of its
// statements, in each of its passes. What it leaves is all of a pass or nothing of
// it; another publisher completes the work; a reader who looked in between gets
// every change exactly once, in order, and no position is used twice.
func TestPublishKilledAtEveryStep(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		const changes = 5 // and crashing has a batch size of 2
		f := x.addKV()
		x.fill(changes)
		k := x.keeper(f, 0)
		x.publish(f)
		k.read()
		n, step := x.kills()
		for round := 1; ; round, n = round+1, n+step {
			// Each change takes one position, the last ones those of a new row and a delete.
			base := x.scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
			fresh := changes + round
			x.exec(fmt.Sprintf("UPDATE kv SET v = %d WHERE id = 3", round), fmt.Sprintf("UPDATE kv SET v = %d WHERE id = 1", round),
				fmt.Sprintf("UPDATE kv SET v = %d WHERE id = 2", round), fmt.Sprintf("INSERT INTO kv VALUES (%d, 'new', %d)", fresh, round),
				fmt.Sprintf("DELETE FROM kv WHERE id = %d", fresh-1))
			want := []string{}
			entries := []string{"upsert 3", "upsert 1", "upsert 2", fmt.Sprintf("upsert %d", fresh), fmt.Sprintf("delete %d", fresh-1)}
			passes := []int64{2, 4, changes}
			if x.capture == feedtype.CaptureColumn { // up to two deletes and two rows
				entries = []string{fmt.Sprintf("delete %d", fresh-1), "upsert 1", "upsert 2", "upsert 3", fmt.Sprintf("upsert %d", fresh)}
				passes = []int64{3, changes}
			}
			for i, entry := range entries {
				want = append(want, fmt.Sprintf("%d %s", base+int64(i)+1, entry))
			}
			before := x.killed("publish", n)
			left := x.unpublished()
			value := x.scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
			given := x.scalar(fmt.Sprintf("SELECT count(*) FROM rowfeed_positions_kv WHERE feed_sync_id > %d", base))
			if x.capture == feedtype.CaptureColumn {
				given += x.scalar(fmt.Sprintf("SELECT count(*) FROM kv WHERE feed_sync_id > %d", base))
			}
			taken := changes - left
			if taken != value-base || taken != given || taken != 0 && !slices.Contains(passes, taken) {
				x.Fatalf("killed at n=%d (%s): %d changes taken, sequence advanced by %d, %d positions given", n, before, taken, value-base, given)
			}
			x.wantSound(f)
			got := k.read()
			if len(got) != int(taken) {
				x.Errorf("killed at n=%d (%s): %d changes taken, %d entries", n, before, taken, len(got))
			}
			x.publish(f)
			if got = append(got, k.read()...); !slices.Equal(got, want) {
				x.Fatalf("killed at n=%d (%s): entries\n%s\nwant\n%s", n, before, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if before == "" {
				if taken != changes {
					x.Errorf("the publisher came to its end with %d of %d changes published", taken, changes)
				}
				break
			}
		}
		if n <= 3*5 {
			x.Errorf("it ended before statement %d: three passes have more", n)
		}
		k.judge(x.kvRows(), byID)
		x.wantSound(f)
	})
}

// TestCommitOutcomeUnknown (M8): a COMMIT that fails, before or after it took effect,
// is an error to the caller, who publishes again: nothing is lost, no position is
// given twice, and RunPublisher does so by itself.
func TestCommitOutcomeUnknown(t *testing.T) {
	testdb.Quick(t)
	eachCapture(t, func(x *env) {
		f := x.addKV()
		k := x.keeper(f, 0)
		x.fill(1)
		x.publish(f)
		k.read()
		for _, committed := range []bool{false, true} {
			name := map[bool]string{false: "lost", true: "done, its answer lost"}[committed]
			k.read()
			commits := 0
			fail := func(ev testdb.TapEvent) error {
				if ev.Kind == testdb.Commit && ev.InTx {
					if commits++; commits == 1 {
						return testdb.ErrInjected
					}
				}
				return nil
			}
			hooks := testdb.Hooks{Before: func(_ context.Context, ev testdb.TapEvent) error { return fail(ev) }}
			if committed {
				hooks = testdb.Hooks{After: func(_ context.Context, ev testdb.TapEvent, err error) error { return errors.Join(err, fail(ev)) }}
			}
			x.exec("INSERT INTO kv SELECT max(id) + 1, 'k', 1 FROM kv", "INSERT INTO kv SELECT max(id) + 1, 'k', 2 FROM kv")
			other := x.tapped(hooks, &rowfeed.Config{PublisherLease: rowfeed.NoLease}) // whose COMMITs are not meant
			if _, err := other.Publish(x.ctx); !errors.Is(err, testdb.ErrInjected) {
				x.Fatalf("COMMIT %s: error %v", name, err)
			}
			wantNow := 0
			if committed {
				wantNow = 2
			}
			got := k.read()
			if len(got) != wantNow {
				x.Errorf("COMMIT %s: %d entries before the next pass, want %d", name, len(got), wantNow)
			}
			if n, err := other.Publish(x.ctx); err != nil || n != 2-wantNow {
				x.Errorf("COMMIT %s: publishing again: %d keys, %v", name, n, err)
			}
			if got = append(got, k.read()...); len(got) != 2 {
				x.Errorf("COMMIT %s: entries %q, want two", name, got)
			}

			commits = 0
			x.exec("INSERT INTO kv SELECT max(id) + 1, 'k', 3 FROM kv")
			ctx, cancel := context.WithCancel(x.ctx)
			var ended atomic.Bool
			result := make(chan error, 1)
			go func() { result <- other.RunPublisher(ctx); ended.Store(true) }()
			x.eventually("RunPublisher goes on", func() bool {
				return ended.Load() || x.unpublished() == 0
			})
			early := ended.Load()
			cancel()
			if err := <-result; err != nil || early {
				x.Errorf("COMMIT %s: RunPublisher ended: %v", name, err)
			}
		}
		k.read()
		if head := x.scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'"); head != 7 || len(k.log) != 7 {
			x.Errorf("head %d and %d entries for 7 changes", head, len(k.log))
		}
		k.judge(x.kvRows(), byID)
		x.wantSound(f)
	})
}

// tapped is the feed kv through a pool of its own that hooks watch.
func (x *env) tapped(h testdb.Hooks, cfg *rowfeed.Config) *rowfeed.Feed {
	x.Helper()
	rf, err := rowfeed.Open(x.ctx, x.db.OpenTapped(x.T, h), x.dialect, cfg)
	if err != nil {
		x.Fatal(err)
	}
	f, err := rf.Feed(x.ctx, "kv")
	if err != nil {
		x.Fatal(err)
	}
	return f
}

// patience is how long a condition is waited for: long enough for a machine that does much else. Of
// mutants, of which some make none come true, a minute shows it.
func patience() time.Duration {
	if os.Getenv("ROWFEED_TEST_EVERY_KILL") == "1" {
		return time.Minute
	}
	return 5 * time.Minute
}

// eventually polls a condition that must come true.
func (x *env) eventually(what string, ok func() bool) {
	x.Helper()
	begun := time.Now()
	for !ok() {
		if took := time.Since(begun); took > patience() {
			x.Fatalf("in vain after %s: %s", took.Round(time.Second), what)
		}
		rest(x.ctx, 2*time.Millisecond)
	}
}

// rest waits for d or for the end of ctx.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
