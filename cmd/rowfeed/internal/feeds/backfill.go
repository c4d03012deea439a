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
}

func newFeedBackfill(a *cli.App) *cobra.Command {
	o := &backfillOptions{}
	cmd := &cobra.Command{
		Use:   "backfill NAME",
		Short: "Place existing rows behind the head of a feed with mode outbox",
		Long: `Places rows of the table that have neither a record nor a position, for a feed with
mode outbox. They get positions behind the head, so that readers at the head are not
disturbed. "feed add" does this for rows that existed before the feed. Run this
command for rows that were imported later without records. Rows that have a position
stay as they are. If the command is interrupted, run it again: it continues where it
stopped.

Rows get the times of the feed's --time-column. In a shard that was filled before they
get the last millisecond before its first record, after the rows that were placed
then.

While the command runs, cursors below the live part of a shard, also the beginning,
are answered with 503 filling. Readers above it continue, and do not receive the
placed rows. To deliver rows to all readers as new ones, use "repair": it appends
records instead.

With --json: {"feed":"events","rows":3}.`,
		Example: "  rowfeed feed backfill events",
		Args:    cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	a.AddOutput(cmd, false)
	return cmd
}

func (o *backfillOptions) run(ctx context.Context, a *cli.App) error {
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		bar := a.NewProgress("placing rows of "+f.Source().String(), rowsOf(ctx, f))
		rows, err := f.Admin().BackFill(ctx, bar.Set)
		bar.Done()
		if err != nil {
			if rows > 0 {
				fmt.Fprintf(a.Stderr, "rowfeed: %s placed before the command failed; run it again to continue\n",
					cli.Plural(rows, "row"))
			}
			return err
		}
		if a.JSON {
			return a.PrintJSON(struct {
				Feed string `json:"feed"`
				Rows int64  `json:"rows"`
			}{o.name, rows})
		}
		return a.PrintLine("%s: %s placed behind the head", o.name, cli.Plural(rows, "row"))
	})
}
