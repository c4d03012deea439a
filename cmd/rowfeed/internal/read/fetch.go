package read

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/spf13/cobra"
)

type fetchOptions struct {
	name       string
	after      string
	limit      int
	wait       cli.Duration
	consistent bool
	part       shardFlags
}

func newFetch(a *cli.App) *cobra.Command {
	o := &fetchOptions{}
	cmd := &cobra.Command{
		Use:   "fetch NAME",
		Short: "Read one page of a feed, as NDJSON",
		Long: `Reads one page of a feed. It prints one entry a line, then
{"cursor":…,"more":…,"base64":…}. Give the cursor to --after to read the next page;
"more":false says that the page reached the head. "base64" lists the columns of a
binary type, whose values are encoded as base64; often there is none.

--after also accepts "now" (the head), and "at:" with an RFC 3339 time. A cursor is
refused with exit code 1 if its reader has seen what the database has lost, or if it is
ahead of the feed, of another generation, or older than the deletes or entries kept.

With --wait a page without entries waits for one, at most this long, up to a minute,
as over HTTP. With --consistent everything that was committed before is published
first, within --wait (default 5s), so that pages up to "more":false show your own
writes.

--shard I reads only the data shard I. --shard I --shard-count N reads part I of N
parts, which together are the whole feed. A cursor says how far its own part was read.
Each shard of a feed with ULIDs has an order and cursors of its own, and any number
(--shard=-5). It need not be named while it is the only one.`,
		Example: `  rowfeed fetch kv --limit 10
  rowfeed fetch kv --after 3
  rowfeed fetch kv --after at:2026-01-31T12:00:00Z
  rowfeed fetch kv --after 3 --wait 30s
  rowfeed fetch kv --after 3 --consistent
  rowfeed fetch kv --shard 0 --shard-count 4
  rowfeed fetch events --shard=-5`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().StringVar(&o.after, "after", "", "the `cursor` of the page before (default: the beginning)")
	cmd.Flags().IntVar(&o.limit, "limit", feedtype.DefaultLimit,
		fmt.Sprintf("at most this many entries, 1 to %d", feedtype.MaxLimit))
	cmd.Flags().Var(&o.wait, "wait", "wait for an entry for at most this time, up to 1m")
	cmd.Flags().BoolVar(&o.consistent, "consistent", false, "first publish what was committed before")
	o.part.add(cmd)
	return cmd
}

func (o *fetchOptions) run(ctx context.Context, a *cli.App) error {
	if o.limit < 1 || o.limit > feedtype.MaxLimit {
		return badLimit(o.name, o.limit)
	}
	if o.wait.Duration < 0 || o.wait.Duration > feedhttp.MaxWait {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "wait", Object: fmt.Sprintf("feed %q", o.name),
			Cause: fmt.Sprintf("--wait %s is not between 0s and %s", o.wait.Duration, feedhttp.MaxWait),
			Next:  "give a duration like 30s; `rowfeed tail` waits for ever"}
	}
	shards, err := o.part.shards(o.name)
	if err != nil {
		return err
	}
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		page, err := f.Fetch(ctx, rowfeed.Request{After: rowfeed.Cursor(o.after), Limit: o.limit, Shards: shards,
			Wait: o.wait.Duration, Consistent: o.consistent})
		if err != nil {
			return err
		}
		return writePage(a.Stdout, page)
	})
}

// badLimit is the error for a --limit out of range. Commands check it themselves: in a Request 0 means the default.
func badLimit(feed string, limit int) error {
	return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "limit", Object: fmt.Sprintf("feed %q", feed),
		Cause: fmt.Sprintf("--limit %d is not between 1 and %d", limit, feedtype.MaxLimit),
		Next:  "read page by page, with --after"}
}
