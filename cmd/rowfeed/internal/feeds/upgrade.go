package feeds

import (
	"context"
	"fmt"
	"slices"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/feedtype"
	"github.com/spf13/cobra"
)

type feedUpgradeOptions struct {
	name        string
	dataShards  int
	shardColumn string
	fence       bool
	takeOver    bool
	capture     string
	retain      cli.Retention
	consent     cli.Consent
	given       func(flag string) bool
}

func newFeedUpgrade(a *cli.App) *cobra.Command {
	o := &feedUpgradeOptions{}
	cmd := &cobra.Command{
		Use:   "upgrade NAME",
		Short: "Restore a feed's triggers and tables, or change its number of data shards",
		Long: `Compares a feed's triggers and tables with those that this version of rowfeed creates,
and replaces those that differ. Meanwhile every change is recorded. Run it after an
upgrade of rowfeed, and if "status" or the log of a publisher says that triggers are
missing. Then run "check" and "repair", to find changes that were made without
triggers. It also creates a missing index by bucket, which readers of parts need.

--data-shards changes the number of data shards. Readers of the whole feed keep their
cursors, and get nothing again. Nearly every key moves to another shard, so cursors of
parts are refused with 409 other-part, except from 1 to 1024 and back. Consumers and
relays with several shards then go on from the lowest of their cursors by themselves.
Positions stay. Writers, publishers and readers of the whole feed continue meanwhile.
Requests for a part are answered with 503 sharding until every key has its shard. If
the command is interrupted, run it again with the same arguments: it continues where it
stopped. If the feed has this number already, nothing changes.

On a terminal --data-shards says which consumers get entries again, and asks, unless
--yes is given. --dry-run only says that, and what else would be changed. If a column of
the table holds the data shards, both say how many rows get their first one: these are
published again, with capture column by setting their feed_sync_id to NULL. A column
shard that the table has of its own is not written: the command is then refused.

The shard column cannot be changed: drop the feed and add it again.

--published-here lets rowfeed give the positions of a feed that was added with
--published-elsewhere: above those that your own publisher has given, so all cursors
stay valid. Stop that publisher first, or add --fence: then it fails from the moment
on in which rowfeed takes over. If the command is interrupted, run it again.

--fence adds triggers that refuse every feed_sync_id which rowfeed's publisher does not
give, to a feed with capture column. See "feed add".

--capture trigger turns a feed with capture column into one with capture trigger. After
it, and not earlier, writers need not set feed_sync_id to NULL any more. All cursors
stay valid. The command makes rowfeed's triggers on the table, drops those of a fence,
and moves the positions into rowfeed's own table, in batches. It writes nothing into
rows. Your own columns, indexes and triggers stay; those that rowfeed has added go when
the feed is dropped. Readers and writers continue, and changes may be published late
until the command is done. Rows get no new feed_sync_id any more: move readers that
select it by SQL first. There is no way back: "feed drop --hand-back" is refused then.
In programs and scripts that declare the feed, set capture trigger and omit what is only
for capture column, such as --adopt. On a terminal the command asks, unless --yes is
given. If it is interrupted, run it again.

--retain changes how long a feed with an outbox keeps its entries: a duration, a
number of entries of each shard, or forever. Purged entries do not come back.`,
		Example: `  rowfeed feed upgrade kv && rowfeed check kv
  rowfeed feed upgrade kv --data-shards 1024
  rowfeed feed upgrade orders --published-here --fence
  rowfeed feed upgrade kv --capture trigger
  rowfeed feed upgrade orders --retain 90d`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name, o.given = args[0], cmd.Flags().Changed
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().IntVar(&o.dataShards, "data-shards", 0,
		fmt.Sprintf("the new `number` of data shards, 1 to %d", rowfeed.MaxDataShards))
	cmd.Flags().BoolVar(&o.takeOver, "published-here", false,
		"let rowfeed give the positions of a feed that was added with --published-elsewhere")
	cmd.Flags().StringVar(&o.capture, "capture", "",
		"`trigger`: move positions out of the rows of a feed with capture column, and make triggers")
	cmd.Flags().BoolVar(&o.fence, "fence", false,
		"make triggers that refuse a feed_sync_id which rowfeed's publisher does not give (capture column)")
	cmd.Flags().Var(&o.retain, "retain",
		"how long entries are kept, like 30d, or how many of each shard, or forever (--mode outbox)")
	o.consent.Bind(cmd)
	cmd.Flags().StringVar(&o.shardColumn, "shard-column", "", "cannot be changed")
	_ = cmd.Flags().MarkHidden("shard-column") // so that the error can say why
	return cmd
}

func (o *feedUpgradeOptions) run(ctx context.Context, a *cli.App) error {
	if o.given("shard-column") {
		return &rowfeed.Error{
			Code:   rowfeed.InvalidRequest,
			Param:  "shard-column",
			Object: fmt.Sprintf("feed %q", o.name),
			Cause:  "--shard-column cannot be changed",
			Next: "run `rowfeed feed drop " + o.name + "`, then `rowfeed feed add` with the column: " +
				"a new generation, too",
		}
	}
	if o.given("data-shards") && (o.dataShards < 1 || o.dataShards > rowfeed.MaxDataShards) {
		return notDataShards(o.name, o.dataShards, "1024 is a good choice for a feed that is read in parallel")
	}
	if o.given("capture") && o.capture != string(feedtype.CaptureTrigger) {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "capture", Object: fmt.Sprintf("feed %q", o.name),
			Cause: fmt.Sprintf("--capture %s: a feed can only be changed to capture trigger", o.capture),
			Next:  "for another capture, drop the feed and add it again"}
	}
	if o.given("capture") && (o.fence || o.takeOver || o.given("data-shards")) {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "capture", Object: fmt.Sprintf("feed %q", o.name),
			Cause: "--capture cannot be combined with --fence, --published-here or --data-shards",
			Next:  "run one command after the other"}
	}
	return a.WithFeed(ctx, o.name, func(s *cli.Session, f *rowfeed.Feed) error {
		if o.capture != "" {
			if err := f.Admin().MayMovePositions(ctx); err != nil {
				return err
			}
		}
		if a.Ask != nil || o.consent.DryRun {
			done, err := o.confirm(ctx, a, s, f)
			if done || err != nil {
				return err
			}
		}
		before := f.Admin().Retention()
		if o.retain.Given && before != o.retain.Retention {
			if err := f.Admin().SetRetention(ctx, o.retain.Retention); err != nil {
				return err
			}
			now := f.Admin().Retention()
			err := a.PrintLine("%s: entries are kept %s, no longer %s", o.name, kept(now), kept(before))
			if err != nil {
				return err
			}
		}
		tookOver := false
		if o.takeOver {
			var err error
			if tookOver, err = o.here(ctx, a, f); err != nil {
				return err
			}
		}
		if o.fence {
			if err := f.Admin().AddFence(ctx); err != nil {
				return err
			}
		}
		moved := false
		if o.capture != "" {
			var err error
			if moved, err = o.move(ctx, a, f); err != nil {
				return err
			}
		}
		unindexed, err := f.Admin().VerifyParts(ctx)
		if err != nil {
			return err
		}
		mended, err := f.Admin().Upgrade(ctx)
		if err != nil {
			return err
		}
		for _, m := range mended {
			if err := a.PrintLine("%s: repaired: %s", o.name, m); err != nil {
				return err
			}
		}
		if f.Capture() != feedtype.CaptureNone &&
			slices.ContainsFunc(mended, func(m string) bool { return m != unindexed }) {
			if err := a.PrintLine("%s: `rowfeed check %s` finds changes that were not recorded meanwhile, "+
				"`rowfeed repair %s` records them", o.name, o.name, o.name); err != nil {
				return err
			}
		}
		info, err := f.Info(ctx)
		if err != nil {
			return err
		}
		switch {
		case o.given("data-shards") && info.ShardIDs != nil: // Reshard refuses it
			_, err := f.Admin().Reshard(ctx, o.dataShards, nil)
			return err
		case o.given("data-shards") && (info.DataShards != o.dataShards || info.State == "sharding"):
			return o.reshard(ctx, a, f, info)
		case info.State == "sharding":
			return a.PrintLine("%s: keys are being assigned to %d data shards; if that was interrupted, "+
				"`rowfeed feed upgrade %s --data-shards %d` continues",
				o.name, info.DataShards, o.name, info.DataShards)
		case info.State == "moving":
			return a.PrintLine("%s: its positions are being moved out of the rows; if that was interrupted, "+
				"`rowfeed feed upgrade %s --capture trigger` continues", o.name, o.name)
		case len(mended) == 0 && !tookOver && !moved && before == f.Admin().Retention():
			return a.PrintLine("%s: in order, nothing changed", o.name)
		}
		return nil
	})
}

// confirm says what the command would change, and names the consumers that would get entries again. It asks if the
// number of data shards is to be changed. done means that this was all that the command was to do.
func (o *feedUpgradeOptions) confirm(
	ctx context.Context, a *cli.App, s *cli.Session, f *rowfeed.Feed,
) (done bool, err error) {
	info, err := f.Info(ctx)
	if err != nil {
		return false, err
	}
	var change, effect string
	// Reshard refuses feeds with ULIDs, and another number while keys are being assigned.
	if o.given("data-shards") && info.ShardIDs == nil && info.State == "active" && info.DataShards != o.dataShards {
		change = fmt.Sprintf("change it from %d to %s", info.DataShards, cli.Plural(int64(o.dataShards), "data shard"))
		if effect, err = dataShardsEffect(ctx, s, f, info.DataShards, o.dataShards); err != nil {
			return false, err
		}
	}
	switch {
	case o.capture != "" && f.Capture() == feedtype.CaptureColumn:
		change, effect = moving(f.Source().String())
	case o.capture != "" && o.consent.DryRun && info.State == "moving":
		change, effect = "continue to move the positions from the rows into rowfeed's own table", allStays
	}
	if o.consent.DryRun {
		return true, o.preview(ctx, a, f, change, effect)
	}
	if change == "" {
		return false, nil
	}
	return false, a.Confirm(ctx, o.consent, o.name, change, effect)
}

// preview prints what the command would change.
func (o *feedUpgradeOptions) preview(ctx context.Context, a *cli.App, f *rowfeed.Feed, change, effect string) error {
	lines, err := f.Admin().Verify(ctx)
	if err != nil {
		return err
	}
	for i, problem := range lines {
		lines[i] = "to repair: " + problem
	}
	if now := f.Admin().Retention(); o.retain.Given && now != o.retain.Retention {
		lines = append(lines, fmt.Sprintf("to change: entries are kept %s, no longer %s",
			kept(o.retain.Retention), kept(now)))
	}
	if o.takeOver && f.State() == "elsewhere" {
		lines = append(lines, "to do: rowfeed gives the positions, above those of your publisher. Cursors stay valid, "+
			"and your publisher must not give positions any more")
	}
	if o.fence {
		lines = append(lines, "to do: make the triggers of a fence on the table, if it has none")
	}
	if change != "" {
		lines = append(lines, "to do: "+change+". "+effect)
	}
	for _, line := range append(lines, "nothing was changed") {
		if err := a.PrintLine("%s: %s", o.name, line); err != nil {
			return err
		}
	}
	return nil
}

// here lets rowfeed give the positions.
func (o *feedUpgradeOptions) here(ctx context.Context, a *cli.App, f *rowfeed.Feed) (changed bool, err error) {
	if changed, err = f.Admin().TakeOver(ctx, o.fence); err != nil {
		return false, err
	}
	if !changed {
		return false, a.PrintLine("%s: rowfeed gives its positions already", o.name)
	}
	if !o.fence {
		adviseFence(a, o.name)
	}
	return true, a.PrintLine("%s: from now on rowfeed gives its positions, not the former publisher; new positions "+
		"are above the existing ones, and cursors stay valid", o.name)
}

// allStays says what is not affected by --capture trigger.
const allStays = "All cursors stay valid. Nothing is written into rows, and your own columns, indexes and triggers " +
	"stay."

// moving says what --capture trigger does.
func moving(table string) (change, effect string) {
	return "make rowfeed's triggers on table " + table + ", drop those of a fence, and move the positions from the " +
			"rows into rowfeed's own table",
		allStays + " From then on rows get no new feed_sync_id, so move readers that select it by SQL first; `feed " +
			"drop --hand-back` is refused. In programs and scripts that declare the feed, set capture trigger."
}

// move moves the positions out of the rows.
func (o *feedUpgradeOptions) move(ctx context.Context, a *cli.App, f *rowfeed.Feed) (changed bool, err error) {
	bar := a.NewProgress("moving positions", rowsOf(ctx, f))
	changed, err = f.Admin().MovePositions(ctx, bar.Set)
	bar.Done()
	if err != nil {
		return false, err
	}
	if !changed {
		return false, a.PrintLine("%s: it has capture trigger already", o.name)
	}
	return true, a.PrintLine("%s: triggers record its changes from now on, and rowfeed's own table has the positions; "+
		"programs that write rows need not set feed_sync_id to NULL any more. Next: in programs and scripts that "+
		"declare the feed, set capture trigger and omit --adopt", o.name)
}

// rowsOf counts the rows of a feed's table, for a progress bar.
func rowsOf(ctx context.Context, f *rowfeed.Feed) func() (int64, error) {
	return func() (int64, error) { return f.Admin().CountWhere(ctx, "") }
}

// kept says how long entries are kept, or how many.
func kept(r rowfeed.Retention) string {
	switch {
	case r.Count > 0:
		return fmt.Sprintf("up to %d per shard", r.Count)
	case r.Age > 0:
		return "for " + r.Age.String()
	}
	return "for ever"
}

// notDataShards is the error for a number of data shards that no feed can have.
func notDataShards(feed string, n int, next string) error {
	return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "data-shards", Object: fmt.Sprintf("feed %q", feed),
		Cause: fmt.Sprintf("--data-shards %d is not between 1 and %d", n, rowfeed.MaxDataShards), Next: next}
}

// reshard changes the number of data shards. Before it begins it prints the consequences.
func (o *feedUpgradeOptions) reshard(ctx context.Context, a *cli.App, f *rowfeed.Feed, info *rowfeed.Info) error {
	meaning := ""
	switch {
	case info.State == "sharding" && info.DataShards == o.dataShards:
		meaning = fmt.Sprintf("continues to assign keys to %d data shards", info.DataShards)
	case info.State == "active":
		meaning = fmt.Sprintf("from %d to %s: parts are not served until this is done",
			info.DataShards, cli.Plural(int64(o.dataShards), "data shard"))
		gaining, err := gainingShards(ctx, f, o.dataShards)
		if err != nil {
			return err
		}
		if gaining != "" {
			meaning += ". " + gaining
		}
	}
	if meaning != "" {
		if err := a.PrintLine("%s: %s", o.name, meaning); err != nil {
			return err
		}
	}
	var keys int64
	bar := a.NewProgress("giving keys their shards", rowsOf(ctx, f))
	_, err := f.Admin().Reshard(ctx, o.dataShards, func(n int64) { keys = n; bar.Set(n) })
	bar.Done()
	if err != nil {
		if keys > 0 {
			fmt.Fprintf(a.Stderr, "rowfeed: %s done before the command failed; run it again to continue\n",
				cli.Plural(keys, "key"))
		}
		return err
	}
	return a.PrintLine("%s: %s", o.name, cli.Plural(int64(o.dataShards), "data shard"))
}
