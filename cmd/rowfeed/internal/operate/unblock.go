package operate

import (
	"context"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/admin"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

type unblockOptions struct {
	name    string
	shard   int
	session string
	dryRun  bool
	sharded bool // --shard was given
}

func newUnblock(a *cli.App) *cobra.Command {
	o := &unblockOptions{}
	cmd := &cobra.Command{
		Use:   "unblock NAME",
		Short: "End the transaction that has a shard of a feed with ULIDs",
		Long: `Ends the connection whose transaction has a shard of a feed with mode blocking or
outbox: a writer that hangs after Feed.Lock or rowfeed_lock_<feed>, or a process that
stopped while it moved records out of an outbox. The transaction is rolled back, and
the next transaction gets the shard. "status" shows which transaction has which shard,
and which ones wait.

Without --shard it is the only shard that a transaction waits for, or else the only
one that has a holder; otherwise --shard is required. With --session only that session
is ended (exit 1 if another session has the shard by now). --dry-run shows which
session would be ended. If no transaction has the shard, nothing is done, exit 0.

Only a session that the database shows as the holder is ended. The command checks this
again immediately before. If the transaction ends in that moment and its connection
begins another one, that one is rolled back.

MariaDB shows the holder of a shard only while another transaction waits for it, so on
MariaDB this command waits for the shard itself, at most five seconds. PostgreSQL does
not show the holder while it makes a shard's first transaction; the command is refused
then. SQLite has no sessions that could be ended.

The login needs: on PostgreSQL the role pg_signal_backend or that of the session; on
MariaDB CONNECTION ADMIN and PROCESS; on MySQL CONNECTION_ADMIN, PROCESS and SELECT on
performance_schema; on SQL Server ALTER ANY CONNECTION and VIEW SERVER STATE. To end
sessions of the same user, it does not need the first right, except on SQL Server.

With --json: {"shard":5,"holder":{"session":"42","user":"app","host":"…",
"application":"…","since":"…","age_seconds":61.5,"state":"…","state_seconds":60.1,
"statement":"…"},"waiting":[…],"ended":true}; holder is null if there is none.`,
		Example: `  rowfeed unblock events --dry-run
  rowfeed unblock events --shard 5 --session 42`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name, o.sharded = args[0], cmd.Flags().Changed("shard")
			if cmd.Flags().Changed("session") && o.session == "" {
				return cli.WrongUse(cmd, "--session is empty")
			}
			return o.run(cmd.Context(), a)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.shard, "shard", 0, "the shard's `number`")
	flags.StringVar(&o.session, "session", "", "end only the session of this `name`")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the session that has the shard, but do not end it")
	a.AddOutput(cmd, false)
	return cmd
}

func (o *unblockOptions) run(ctx context.Context, a *cli.App) error {
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		req := admin.UnblockRequest{Session: o.session, DryRun: o.dryRun}
		if o.sharded {
			req.Shard = &o.shard
		}
		found, err := f.Admin().Unblock(ctx, req)
		switch {
		case err != nil:
			return err
		case a.JSON:
			return a.PrintJSON(found)
		case found.Holder == nil:
			return a.PrintLine("%s: no transaction holds shard %d, nothing changed", o.name, found.Shard)
		case !found.Ended:
			return a.PrintLine("%s: shard %d is held by %s", o.name, found.Shard, holderLine(found.Holder))
		}
		return a.PrintLine("%s: shard %d is free; ended %s", o.name, found.Shard, holderLine(found.Holder))
	})
}

// holderLine describes a session in one line: its user, since when it has its transaction, and its statement.
func holderLine(s *admin.Session) string {
	line := "session " + s.Session
	if who := strings.TrimSpace(s.User + " " + s.Host + " " + s.Application); who != "" {
		line += " (" + who + ")"
	}
	if s.Since != nil && s.AgeSeconds != nil {
		line += " since " + s.Since.Format(time.RFC3339) + ", for " + age(*s.AgeSeconds)
	}
	if s.State != "" {
		line += ", " + s.State
		if s.StateSeconds != nil {
			line += " for " + age(*s.StateSeconds)
		}
	}
	if s.Statement != "" {
		line += ": " + strings.Join(strings.Fields(s.Statement), " ")
	}
	return line
}
