package feeds

import (
	"context"
	"fmt"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

type backfillOptions struct {
	name string
	json bool
}

func newFeedBackfill(a *cli.App) *cobra.Command {
	o := &backfillOptions{}
	cmd := &cobra.Command{
		Use:   "backfill NAME",
		Short: "Place rows behind the head of a feed with mode outbox",
		Long: `Places rows of the table that have neither a record nor a place, of a feed with mode
outbox: behind the head, where it disturbs nobody who reads there. "feed add" does it
for rows that were there before the feed; run this for those that were imported since
without records. Rows that have a place already are left alone. When it breaks off, run
it again: it goes on where it stopped.

Rows get the times of the feed's --time-column, those of a shard that was filled before
the last millisecond before its first record; they come behind what was placed then.
While it runs cursors below the live part of a shard, the beginning too, are answered
with 503 filling; readers above that go on. They are not told of the rows: "repair"
appends records instead, so that the rows come to everyone as new ones.

With --json: {"feed":"events","rows":3}.`,
		Example: "  rowfeed feed backfill events",
		Args:    cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (o *backfillOptions) run(ctx context.Context, a *cli.App) error {
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		bar := a.NewProgress("placing rows of "+f.Source().String(), -1)
		rows, err := f.Admin().BackFill(ctx, bar.Set)
		bar.Done()
		if err != nil {
			if rows > 0 {
				fmt.Fprintf(a.Stderr, "rowfeed: %s placed before it broke off; the same line goes on from there\n",
					cli.Plural(rows, "row"))
			}
			return err
		}
		if o.json {
			return a.PrintJSON(struct {
				Feed string `json:"feed"`
				Rows int64  `json:"rows"`
			}{o.name, rows})
		}
		return a.PrintLine("%s: %s placed behind the head", o.name, cli.Plural(rows, "row"))
	})
}
