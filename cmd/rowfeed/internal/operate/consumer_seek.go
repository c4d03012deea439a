package operate

import (
	"errors"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

func newConsumerSeek(a *cli.App) *cobra.Command {
	o := &consumerOptions{}
	cmd := &cobra.Command{
		Use:   "seek CONSUMER --feed F --to CURSOR",
		Short: "Set a consumer's cursor",
		Long: `Sets a consumer's cursor: to one that the feed gave, to "now" (the head), or to "at:"
and a time. If it is set back, the consumer receives entries again, with the present
values of their rows. If it is set forward, the consumer never receives the entries in
between. For a feed with ULIDs --shard names the shard of the cursor. Without --shard
all shards are set to the same ULID, or each to its own head or time.

On a terminal it says how much is skipped or sent again, and asks, unless --yes is
given. --dry-run only says so.`,
		Example: `  rowfeed consumer seek billing --feed orders --to 1200
  rowfeed consumer seek billing --feed orders --to at:2026-01-31T12:00:00Z`,
		Args: cli.Args(1, 1, "the CONSUMER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.consumer = args[0]
			switch {
			case o.feed == "" || !cmd.Flags().Changed("to"):
				return cli.WrongUse(cmd, "give --feed and --to")
			case o.to == "": // which is the beginning in requests
				return cli.WrongUse(cmd, "--to is empty, perhaps because a variable is not set; for the beginning use "+
					"`rowfeed consumer reset`")
			}
			to := rowfeed.Cursor(o.to)
			return forOperator(o.move(cmd.Context(), a, "set it to "+o.to, to, func(s *cli.Session) (int64, error) {
				return s.Admin().SeekConsumer(cmd.Context(), o.id(), to)
			}, "set to "+o.to))
		},
	}
	o.bind(cmd)
	o.consent.Bind(cmd)
	cmd.Flags().StringVar(&o.to, "to", "", "the new `cursor`, now, or at:TIME")
	return cmd
}

// forOperator replaces the next step of an error for a cursor that cannot be set. The feed's own is for a reader, and
// names the parameter after.
func forOperator(err error) error {
	var e *rowfeed.Error
	if !errors.As(err, &e) || e.Param != "after" && !errors.Is(err, rowfeed.CursorAhead) &&
		!errors.Is(err, rowfeed.GenerationChanged) && !errors.Is(err, rowfeed.HistoryLost) {
		return err
	}
	told := *e
	told.Param, told.Cause = "to", strings.TrimPrefix(e.Cause, "after: ")
	told.Next = "give --to a cursor that this feed has given, now, or at: and a time such as at:2026-01-31T12:00:00Z"
	return &told
}
