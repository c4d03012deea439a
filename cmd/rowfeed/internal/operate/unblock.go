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
	json    bool
	sharded bool // --shard was given
}

func newUnblock(a *cli.App) *cobra.Command {
	o := &unblockOptions{}
	cmd := &cobra.Command{
		Use:   "unblock NAME",
		Short: "End the transaction that has a shard of a feed with ULIDs",
		Long: `Ends the connection whose transaction has a shard of a feed with mode blocking or
outbox: a writer that hangs after Feed.Lock or rowfeed_lock_<feed>, a mover of an
outbox that was stopped. The transaction is rolled back, and the next one gets the
shard. "status" shows who has which shard, and who waits.

Without --shard it is the only shard that somebody waits for, or else the only one
that is taken; where there are several, or none is seen, one must be named. With
--session only that one is ended (exit 1 when another has the shard by now). --dry-run
shows who it would be. When nobody has the shard that is named nothing is done, exit 0.

Nobody is ended of whom the database does not say that he has the shard. It is
looked at again right before; should the transaction end in just that moment, and
its connection begin another, that one is lost. MariaDB tells who has a shard only
while somebody waits for it: there this command waits for it itself, for five
seconds at most. PostgreSQL does not tell who makes a shard's first transaction;
that is refused. SQLite has no sessions that could be ended.

It takes the role pg_signal_backend or that of the session on PostgreSQL,
CONNECTION ADMIN and PROCESS on MariaDB, CONNECTION_ADMIN, PROCESS and SELECT on
performance_schema on MySQL; sessions of one's own user can be ended without the
first.

With --json: {"shard":5,"holder":{"session":"42","user":"app","host":"…",
"application":"…","since":"…","age_seconds":61.5,"state":"…","state_seconds":60.1,
"statement":"…"},"waiting":[…],"ended":true}; holder is null when nobody has it.`,
		Example: `  rowfeed unblock events --dry-run
  rowfeed unblock events --shard 5 --session 42`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name, o.sharded = args[0], cmd.Flags().Changed("shard")
			if cmd.Flags().Changed("session") && o.session == "" {
				return cli.WrongUse(cmd, "unblock: --session is empty")
			}
			return o.run(cmd.Context(), a)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&o.shard, "shard", 0, "the shard's `number`")
	flags.StringVar(&o.session, "session", "", "end only the session of this `name`")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show who has the shard, and end nobody")
	flags.BoolVar(&o.json, "json", false, "print JSON")
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
		case o.json:
			return a.PrintJSON(found)
		case found.Holder == nil:
			return a.PrintLine("%s: nobody has shard %d, nothing changed", o.name, found.Shard)
		case !found.Ended:
			return a.PrintLine("%s: shard %d is held by %s", o.name, found.Shard, holderLine(found.Holder))
		}
		return a.PrintLine("%s: shard %d is free; ended %s", o.name, found.Shard, holderLine(found.Holder))
	})
}

// holderLine is a session in one line: who, since when, what it does.
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
