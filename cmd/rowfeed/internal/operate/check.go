package operate

import (
	"context"
	"fmt"
	"slices"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/dialect"
	"github.com/spf13/cobra"
)

type checkOptions struct {
	name string
}

func newCheck(a *cli.App) *cobra.Command {
	o := &checkOptions{}
	cmd := &cobra.Command{
		Use:   "check NAME",
		Short: "Compare a feed with its table; exit 1 if something is wrong",
		Long: `Compares a feed with its table, in one snapshot and under load. Positions are unique
and not above the sequence; every row has a position, or a change that waits; every
position has a row, is deleted, or has a change that waits. Outside that snapshot, key
by key, it checks that every key is in its data shard (not while "feed upgrade
--data-shards" runs), and that the triggers exist.

For a feed with ULIDs it looks for rows without a ULID, for ULIDs that rowfeed did not
give out, for the unique index and the functions of writers, and with mode outbox for
rows that have neither a position nor a record.

It writes nothing. If something is wrong it prints the rules and keys concerned (at
most 100 per rule) and exits with 1. It prints a note for what it could not check,
such as rows without a record if entries were purged. Notes alone do not change the
exit code.

With --json: [{"rule":"row-has-position","key":{"id":7},"problem":"…"}]. A finding
about the whole feed has no key, and a note has "note":true. [] says that all is in
order.`,
		Example: "  rowfeed check kv",
		Args:    cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	a.AddOutput(cmd, true)
	return cmd
}

func (o *checkOptions) run(ctx context.Context, a *cli.App) error {
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		findings, err := f.Admin().Check(ctx)
		if err != nil {
			return err
		}
		// An error of printing is less important than the findings.
		printed := o.show(a, findings)
		wrong := slices.DeleteFunc(slices.Clone(findings), func(x admin.Finding) bool { return x.Note })
		if len(wrong) == 0 {
			return printed
		}
		next := fmt.Sprintf("`rowfeed feed upgrade %s` recreates triggers, functions and indexes", o.name)
		if slices.ContainsFunc(wrong, admin.Finding.ByRepair) && f.State() != dialect.StateElsewhere {
			next += fmt.Sprintf("; then `rowfeed repair %s` records changes for the keys", o.name)
		} else {
			next += "; else each problem says what to do"
		}
		return &rowfeed.Error{Code: rowfeed.Failed, Object: fmt.Sprintf("feed %q", o.name),
			Cause: cli.Plural(int64(len(wrong)), "problem") + " found", Next: next}
	})
}

func (o *checkOptions) show(a *cli.App, findings []admin.Finding) error {
	switch {
	case a.JSON:
		return a.PrintJSON(findings)
	case len(findings) == 0:
		return a.PrintLine("%s: in order", o.name)
	}
	var rows []table.Row
	for _, x := range findings {
		key := ""
		if x.Key != nil {
			key = string(x.Key.AppendJSON(nil))
		}
		rule := x.Rule
		if x.Note {
			rule = "note: " + rule
		}
		rows = append(rows, table.Row{rule, key, x.Problem})
	}
	return a.PrintTable(table.Row{"rule", "key", cli.Wrapped("problem")}, rows)
}

type repairOptions struct{ name string }

func newRepair(a *cli.App) *cobra.Command {
	o := &repairOptions{}
	return &cobra.Command{
		Use:   "repair NAME",
		Short: "Record changes for the keys that check finds",
		Long: `Records changes for the keys that "check" finds missing on either side, so that the
publisher corrects them.

A key in the wrong data shard gets its own shard, and is published again for the
readers of that part. Readers of the other part, which have it already, are not told.
If the parts are delivered to separate receivers, "rowfeed feed bump" makes all of
them start over.

With mode outbox it appends records for rows that have neither a record nor a
position, so that readers receive them as new rows; "feed backfill" places them behind
the head instead. With mode blocking nothing can be recorded, and the command is
refused. Rows that other transactions have locked are skipped. Their number is printed
at the end, with exit code 1. "rowfeed feed upgrade" restores triggers.`,
		Example: "  rowfeed repair kv && rowfeed publish --once kv && rowfeed check kv",
		Args:    cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
}

func (o *repairOptions) run(ctx context.Context, a *cli.App) error {
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		n, err := f.Admin().Repair(ctx)
		var printed error
		switch {
		case n > 0: // also if other rows were locked
			printed = a.PrintLine("%s: %s recorded; a publisher will publish them", o.name, cli.Plural(n, "change"))
		case err == nil:
			printed = a.PrintLine("%s: nothing to repair", o.name)
		}
		if err != nil {
			return err
		}
		return printed
	})
}
