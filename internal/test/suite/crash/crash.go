package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/rowfeed/rowfeed/internal/test/suite"
	"github.com/rowfeed/rowfeed/internal/test/testdb"
)

// Each child process runs one call of the library, and is killed before the statement that its parent names.
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
			capture := feedtype.Capture(os.Getenv("CAPTURE"))
			_, err := rf.AddFeed(ctx, rowfeed.FeedSpec{Name: "kv", Table: "kv", Capture: capture}, nil)
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
			f, err := rf.AddFeed(ctx, suite.BackfillSpec(), nil)
			if err == nil {
				_, err = f.Admin().BackFill(ctx, nil)
			}
			return err
		},
		"take over": func(ctx context.Context, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "kv")
			if err == nil {
				_, err = f.Admin().TakeOver(ctx, os.Getenv("FENCE") == "1")
			}
			return err
		},
		"move out of rows": func(ctx context.Context, rf *rowfeed.DB) error {
			f, err := rf.Feed(ctx, "kv")
			if err == nil {
				_, err = f.Admin().MovePositions(ctx, nil)
			}
			return err
		},
		"drop": func(ctx context.Context, rf *rowfeed.DB) error { return rf.DropFeed(ctx, "kv") },
	} {
		testdb.RegisterChild(name, func() {
			if err := suite.Crashing(call); err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
		})
	}
}

// TestKilledPublisherLosesNothing (M8): a publisher is killed before each of its statements, in each of its passes. A
// pass has then happened completely or not at all, and another publisher completes the work. A reader gets every change
// once, in order, and no position is used twice.
func TestKilledPublisherLosesNothing(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		const changes = 5 // suite.Crashing has batches of 2
		f := x.AddKV()
		x.Fill(changes)
		k := x.Recorder(f, 0)
		x.Publish(f)
		k.Read()
		n, step := x.Kills()
		for round := 1; ; round, n = round+1, n+step {
			// Each change takes one position, the last ones those of a new row and a delete.
			base := x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
			fresh := changes + round
			x.Exec(
				fmt.Sprintf("UPDATE kv SET v = %d WHERE id = 3", round),
				fmt.Sprintf("UPDATE kv SET v = %d WHERE id = 1", round),
				fmt.Sprintf("UPDATE kv SET v = %d WHERE id = 2", round),
				fmt.Sprintf("INSERT INTO kv VALUES (%d, 'new', %d)", fresh, round),
				fmt.Sprintf("DELETE FROM kv WHERE id = %d", fresh-1),
			)
			want := []string{}
			entries := []string{
				"upsert 3",
				"upsert 1",
				"upsert 2",
				fmt.Sprintf("upsert %d", fresh),
				fmt.Sprintf("delete %d", fresh-1),
			}
			passes := []int64{2, 4, changes}
			if x.Capture == feedtype.CaptureColumn { // up to two deletes and two rows
				entries = []string{
					fmt.Sprintf("delete %d", fresh-1),
					"upsert 1",
					"upsert 2",
					"upsert 3",
					fmt.Sprintf("upsert %d", fresh),
				}
				passes = []int64{3, changes}
			}
			for i, entry := range entries {
				want = append(want, fmt.Sprintf("%d %s", base+int64(i)+1, entry))
			}
			before := x.Killed("publish", n)
			left := x.Unpublished()
			value := x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'")
			given := x.Scalar(fmt.Sprintf("SELECT count(*) FROM rowfeed_positions_kv WHERE feed_sync_id > %d", base))
			if x.Capture == feedtype.CaptureColumn {
				given += x.Scalar(fmt.Sprintf("SELECT count(*) FROM kv WHERE feed_sync_id > %d", base))
			}
			taken := changes - left
			if taken != value-base || taken != given || taken != 0 && !slices.Contains(passes, taken) {
				x.Fatalf("killed at n=%d (%s): %d changes published, sequence advanced by %d, %d new positions", n,
					before, taken, value-base, given)
			}
			x.WantSound(f)
			got := k.Read()
			if len(got) != int(taken) {
				x.Errorf("killed at n=%d (%s): %d changes published, but %d entries read", n, before, taken, len(got))
			}
			x.Publish(f)
			if got = append(got, k.Read()...); !slices.Equal(got, want) {
				x.Fatalf("killed at n=%d (%s): entries\n%s\nwant\n%s", n, before, strings.Join(got, "\n"),
					strings.Join(want, "\n"))
			}
			if before == "" {
				if taken != changes {
					x.Errorf("the publisher was not killed, and published %d of %d changes", taken, changes)
				}
				break
			}
		}
		if n <= 3*5 {
			x.Errorf("the publisher sent fewer than %d statements, want more than 15 for three passes", n)
		}
		k.Check(x.KVRows(), suite.ByID)
		x.WantSound(f)
	})
}

// TestCommitWithUnknownOutcomeIsRetried (M8): a COMMIT that fails, before or after it took effect, is an error for the
// caller, which publishes again. Nothing is lost and no position is given twice. RunPublisher retries by itself.
func TestCommitWithUnknownOutcomeIsRetried(t *testing.T) {
	testdb.Quick(t)
	suite.EachCapture(t, func(x *suite.Env) {
		f := x.AddKV()
		k := x.Recorder(f, 0)
		x.Fill(1)
		x.Publish(f)
		k.Read()
		for _, committed := range []bool{false, true} {
			name := map[bool]string{false: "that fails", true: "that succeeds without an answer"}[committed]
			k.Read()
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
				hooks = testdb.Hooks{
					After: func(_ context.Context, ev testdb.TapEvent, err error) error {
						return errors.Join(err, fail(ev))
					},
				}
			}
			x.Exec("INSERT INTO kv SELECT max(id) + 1, 'k', 1 FROM kv",
				"INSERT INTO kv SELECT max(id) + 1, 'k', 2 FROM kv")
			other := x.Tapped(hooks, &rowfeed.Config{PublisherLease: rowfeed.NoLease}) // a lease has COMMITs of its own
			if _, err := other.Publish(x.Ctx); !errors.Is(err, testdb.ErrInjected) {
				x.Fatalf("COMMIT %s: error %v", name, err)
			}
			wantNow := 0
			if committed {
				wantNow = 2
			}
			got := k.Read()
			if len(got) != wantNow {
				x.Errorf("COMMIT %s: %d entries before the next pass, want %d", name, len(got), wantNow)
			}
			if n, err := other.Publish(x.Ctx); err != nil || n != 2-wantNow {
				x.Errorf("COMMIT %s: publishing again: %d keys, %v", name, n, err)
			}
			if got = append(got, k.Read()...); len(got) != 2 {
				x.Errorf("COMMIT %s: entries %q, want two", name, got)
			}

			commits = 0
			x.Exec("INSERT INTO kv SELECT max(id) + 1, 'k', 3 FROM kv")
			ctx, cancel := context.WithCancel(x.Ctx)
			var ended atomic.Bool
			result := make(chan error, 1)
			go func() { result <- other.RunPublisher(ctx); ended.Store(true) }()
			x.Eventually("RunPublisher has published after the failed COMMIT", func() bool {
				return ended.Load() || x.Unpublished() == 0
			})
			early := ended.Load()
			cancel()
			if err := <-result; err != nil || early {
				x.Errorf("COMMIT %s: RunPublisher ended: %v", name, err)
			}
		}
		k.Read()
		if head := x.Scalar("SELECT value FROM rowfeed_sequences WHERE name = 'kv'"); head != 7 || len(k.Log) != 7 {
			x.Errorf("the head is %d and a reader got %d entries, want 7 of both", head, len(k.Log))
		}
		k.Check(x.KVRows(), suite.ByID)
		x.WantSound(f)
	})
}
