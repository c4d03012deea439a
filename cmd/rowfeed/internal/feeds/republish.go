package feeds

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
	"golang.org/x/time/rate"
)

// recordBatch is the maximum number of rows that one transaction records.
const recordBatch = 1000

type republishOptions struct {
	name  string
	keys  []string
	where string
	all   bool
	rate  cli.Rate
}

func newRepublish(a *cli.App) *cobra.Command {
	o := &republishOptions{}
	cmd := &cobra.Command{
		Use:   "republish NAME (--key K… | --where SQL | --all)",
		Short: "Give rows new positions, so that readers receive them again",
		Long: `Records changes for rows, so that the publisher gives them new positions and readers
receive them again, with their present values. No row is locked. Rows that "unpublish"
hid are shown again if --key names them.

A key is written as entries show it: the value if the key has one column, else the
JSON object or array, such as {"ns":"a","k":"b"}. --where is a SQL condition on the
table, which is called t; it runs as it is written. --rate limits the rows per second,
if readers should not be flooded. If the command is interrupted, it can be run again.

Keys that have neither a row nor a delete in the feed are left out. The output says
how many they are.`,
		Example: `  rowfeed republish kv --key 1 --key 2
  rowfeed republish kv --where "ns = 'users' AND id < 1000"
  rowfeed republish kv --all --rate 500/s`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			ways := 0
			for _, flag := range []string{"key", "where", "all"} {
				if cmd.Flags().Changed(flag) {
					ways++
				}
			}
			if ways != 1 || cmd.Flags().Changed("where") && o.where == "" {
				return cli.WrongUse(cmd, "which rows? Give one of --key, --where (not empty) and --all")
			}
			return o.run(cmd.Context(), a)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.keys, "key", nil, "a `key`; may be repeated")
	f.StringVar(&o.where, "where", "", "rows for which this `SQL` condition holds")
	f.BoolVar(&o.all, "all", false, "every row")
	f.Var(&o.rate, "rate", "at most this many rows per second, as 500/s (default: unlimited)")
	return cmd
}

func (o *republishOptions) run(ctx context.Context, a *cli.App) error {
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		var n int64
		var unknown string
		var err error
		if len(o.keys) > 0 {
			n, unknown, err = o.byKey(ctx, f)
		} else {
			n, err = o.byCondition(ctx, a, f)
		}
		if err != nil {
			if n > 0 {
				fmt.Fprintf(a.Stderr, "rowfeed: %s recorded before the command failed\n", cli.Plural(n, "key"))
			}
			return err
		}
		return a.PrintLine("%s: %s to be republished; a publisher will give them new positions%s",
			o.name, cli.Plural(n, "key"), unknown)
	})
}

func (o *republishOptions) byKey(ctx context.Context, f *rowfeed.Feed) (n int64, unknown string, err error) {
	keys, unknown, err := parseKeys(ctx, f, o.keys)
	if err != nil {
		return 0, "", err
	}
	pace := newPacer(o.rate)
	for len(keys) > 0 {
		batch := keys[:min(pace.batch, len(keys))]
		keys = keys[len(batch):]
		if err := f.InOwnTx(ctx, func(tx rowfeed.Tx) error { return f.Republish(ctx, tx, batch...) }); err != nil {
			return n, "", err
		}
		n += int64(len(batch))
		if err := pace.wait(ctx, int64(len(batch))); err != nil {
			return n, "", err
		}
	}
	return n, unknown, nil
}

func (o *republishOptions) byCondition(ctx context.Context, a *cli.App, f *rowfeed.Feed) (int64, error) {
	bar := a.NewProgress("republishing", func() (int64, error) { return f.Admin().CountWhere(ctx, o.where) })
	defer bar.Done()
	pace := newPacer(o.rate)
	var last int64
	return f.Admin().RepublishWhere(ctx, o.where, pace.batch, func(rows int64) error {
		n := rows - last
		last = rows
		bar.Set(rows)
		return pace.wait(ctx, n)
	})
}

// pacer spreads batches of rows evenly over time.
type pacer struct {
	batch   int
	limiter *rate.Limiter
}

// newPacer chooses batches of the rows of a fifth of a second.
func newPacer(r cli.Rate) *pacer {
	if r.PerSecond == 0 {
		return &pacer{batch: recordBatch, limiter: rate.NewLimiter(rate.Inf, recordBatch)}
	}
	batch := int(min(max(r.PerSecond/5, 1), recordBatch))
	return &pacer{batch: batch, limiter: rate.NewLimiter(rate.Limit(r.PerSecond), batch)}
}

// wait waits until n more rows may be recorded. Unlike Limiter.WaitN it does not refuse a wait beyond the deadline of
// ctx: it waits until then.
func (p *pacer) wait(ctx context.Context, n int64) error {
	if n == 0 {
		return ctx.Err()
	}
	now := time.Now()
	reservation := p.limiter.ReserveN(now, int(n))
	if !reservation.OK() {
		return errors.New("more rows in a batch than the batch's size")
	}
	t := time.NewTimer(reservation.DelayFrom(now))
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// parseKeys parses keys. It leaves out keys that have neither a row nor a delete in the feed; unknown says how many.
func parseKeys(ctx context.Context, f *rowfeed.Feed, texts []string) (known []rowfeed.Key, unknown string, err error) {
	for _, text := range texts {
		key, err := f.ParseKey(text)
		if err != nil {
			return nil, "", err
		}
		strangers, err := f.Admin().UnknownKeys(ctx, key)
		if err != nil {
			return nil, "", err
		}
		if len(strangers) == 0 {
			known = append(known, key)
		}
	}
	if n := len(texts) - len(known); n > 0 {
		unknown = fmt.Sprintf("; %s left out, without a row or a delete in the feed", cli.Plural(int64(n), "key"))
	}
	return known, unknown, nil
}

type unpublishOptions struct {
	name string
	keys []string
}

func newUnpublish(a *cli.App) *cobra.Command {
	o := &unpublishOptions{}
	cmd := &cobra.Command{
		Use:   "unpublish NAME --key K…",
		Short: "Hide rows from a feed: readers get a delete",
		Long: `Hides rows from a feed until they are republished by key. Readers receive a delete,
and later changes of the row stay hidden. The table is not changed. A key is written
as for "republish".`,
		Example: `  rowfeed unpublish kv --key 2
  rowfeed republish kv --key 2                    # shows it again`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			if len(o.keys) == 0 {
				return cli.WrongUse(cmd, "which rows? Give --key")
			}
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().StringArrayVar(&o.keys, "key", nil, "a `key`; may be repeated")
	return cmd
}

func (o *unpublishOptions) run(ctx context.Context, a *cli.App) error {
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		keys, unknown, err := parseKeys(ctx, f, o.keys)
		if err != nil {
			return err
		}
		if err := f.InOwnTx(ctx, func(tx rowfeed.Tx) error { return f.Unpublish(ctx, tx, keys...) }); err != nil {
			return err
		}
		return a.PrintLine("%s: %s to be hidden; a publisher will publish deletes of them%s",
			o.name, cli.Plural(int64(len(keys)), "key"), unknown)
	})
}
