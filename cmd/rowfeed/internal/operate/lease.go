package operate

import (
	"context"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

func newLease(a *cli.App) *cobra.Command {
	cmd := cli.NewGroup("lease", "List leases, and release one whose holder is gone",
		`A lease is a named job that one process at a time may do. Its holder renews it. A
holder that has not renewed it in time loses it, and the next one acquires it with a
higher epoch. The publishers of feed kv take turns through the lease "publish:kv", the
instances of a relay through "relay:kv:NAME". If a relay or a consumer has several
shards, each shard has a lease: "consumer:kv:NAME/4/0" is that of shard 0 of 4, and
"…/4/seat/0" says that an instance is running. Programs have leases of their own
through the library.`, `  rowfeed lease list
  rowfeed lease release publish:kv`)
	list, release := &leaseListOptions{}, &leaseReleaseOptions{}
	listCmd := &cobra.Command{
		Use:   "list",
		Short: "List leases, their holders, and since when they hold them",
		Long: `Lists every lease that was ever acquired, on the database's clock: whether it is held,
expired (it can be acquired) or free, the holder as host/pid, the epoch of the claim,
when the claim began, how often it was renewed, and the time left. Free leases of
former shards, or of dropped consumers, are only listed with --all: they are kept so
that their epochs are never used again.

With --json: an array of {"name":"publish:kv","state":"held",
"owner":"host/pid/random","epoch":2,"since":"2026-01-31T12:00:00Z",
"expires_in_seconds":8.5,"renewals":7}. The owner of a free lease is "", and its
expires_in_seconds is 0.`,
		Example: "  rowfeed lease list --json",
		Args:    cli.Args(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return list.run(cmd.Context(), a) },
	}
	a.AddOutput(listCmd, true)
	listCmd.Flags().BoolVar(&list.all, "all", false, "also free leases of former shards and consumers")
	releaseCmd := &cobra.Command{
		Use:   "release NAME",
		Short: "Release a lease in place of its holder",
		Long: `Ends the claim on a lease, so that the next one can begin. Use it if the holder is gone
or stuck, or if a leap of the database's clock has made the claim too long. The claim of
a holder that was killed expires by itself.

A holder that still runs stops when it next renews, after a third of the time that the
claim lasts. The database refuses its writes from now on if it asserts its claim. Its
effects elsewhere are not refused until it stops.

With --epoch only the claim with that number ends, so that a holder that has acquired
the lease since you looked keeps it (exit 1). A free lease stays free, exit 0.`,
		Example: `  rowfeed lease release publish:kv
  rowfeed lease release nightly-report --epoch 7`,
		Args: cli.Args(1, 1, "the lease's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			release.name = args[0]
			if cmd.Flags().Changed("epoch") && release.epoch < 1 {
				return cli.WrongUse(cmd, "--epoch: %d is not an epoch: epochs begin at 1", release.epoch)
			}
			return release.run(cmd.Context(), a)
		},
	}
	releaseCmd.Flags().Int64Var(&release.epoch, "epoch", 0, "end only the claim of this `number`")
	cmd.AddCommand(listCmd, releaseCmd)
	return cmd
}

type leaseListOptions struct{ all bool }

func (o *leaseListOptions) run(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	list := s.Admin().CurrentLeases
	if o.all {
		list = s.Admin().Leases
	}
	all, err := list(ctx)
	if err != nil {
		return err
	}
	switch {
	case a.JSON && len(all) == 0:
		return a.PrintJSON([]any{})
	case a.JSON:
		return a.PrintJSON(all)
	case len(all) == 0:
		return a.PrintLine("there are no leases; a publisher acquires one for its feed")
	}
	var rows []table.Row
	for _, l := range all {
		left := "-"
		if l.State == rowfeed.LeaseHeld {
			left = age(l.ExpiresInSeconds)
		}
		rows = append(rows,
			table.Row{l.Name, l.State, process(l.Owner), l.Epoch, l.Since.Format(time.RFC3339), l.Renewals, left})
	}
	return a.PrintTable(table.Row{"lease", "state", "holder", "epoch", cli.Wide("since"), cli.Wide("renewals"),
		"time left"}, rows)
}

type leaseReleaseOptions struct {
	name  string
	epoch int64
}

func (o *leaseReleaseOptions) run(ctx context.Context, a *cli.App) error {
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	was, err := s.Admin().ReleaseLease(ctx, o.name, o.epoch)
	if err != nil {
		return err
	}
	if was.State == rowfeed.LeaseFree {
		return a.PrintLine("%s: is free already, nothing changed", o.name)
	}
	return a.PrintLine("%s: released; %s had it since %s (epoch %d)",
		o.name, process(was.Owner), was.Since.Format(time.RFC3339), was.Epoch)
}

// process returns the part of a lease's owner that operators need: host/pid.
func process(owner string) string {
	if owner == "" {
		return "-"
	}
	parts := strings.SplitN(owner, "/", 3)
	return strings.Join(parts[:min(len(parts), 2)], "/")
}
