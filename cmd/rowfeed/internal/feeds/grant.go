package feeds

import (
	"context"
	"strings"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

type grantOptions struct {
	name   string
	revoke bool
	logins rowfeed.Grants
	print  bool
}

func newFeedGrant(a *cli.App) *cobra.Command {
	o := &grantOptions{}
	cmd := &cobra.Command{
		Use:   "grant NAME --writer LOGIN --reader LOGIN",
		Short: "Let logins write to a feed, or read it, and nothing else",
		Long: `Grants logins of the database the rights on rowfeed's own tables and functions that
writers and readers of a feed need, and no others. Grant the rights on your own table
(INSERT, SELECT) yourself.

A writer takes ULIDs (--mode blocking), or appends records to the outbox or to the
table of changes (--capture app). If triggers record the changes, writers need no
right. A reader fetches, and serves with "serve --no-publish". It moves no records out
of an outbox: that needs a publisher with another login.

LOGIN is a role of PostgreSQL, an account of MariaDB or MySQL as app (which is app@%)
or app@10.0.0.%, or a user of the database on SQL Server. It may be a role that others
are members of. Give --writer and --reader as often as you like. The rights survive
"feed upgrade", and end with "feed drop" or "feed revoke". The owner of rowfeed's tables
needs no grant, and is refused. SQLite has no logins.

--print changes nothing. It needs a server, because it reads the feed's record.

With --json, as in "feed revoke": {"feed":"ev","writers":["app"],"readers":[]}: all
logins that now have rights on the feed.`,
		Example: `  rowfeed feed grant ev --writer app
  rowfeed feed grant ev --reader 'reports@10.0.0.%' --reader auditors
  rowfeed feed grant ev --writer app --print`,
	}
	return o.command(a, cmd)
}

func newFeedRevoke(a *cli.App) *cobra.Command {
	o := &grantOptions{revoke: true}
	cmd := &cobra.Command{
		Use:   "revoke NAME --writer LOGIN --reader LOGIN",
		Short: "Revoke the rights of writers and readers",
		Long: `Revokes rights that "feed grant" gave. A login keeps the rights that it needs for
other feeds, and all that other commands gave it. Running it again changes nothing.`,
		Example: "  rowfeed feed revoke ev --writer app",
	}
	return o.command(a, cmd)
}

func (o *grantOptions) command(a *cli.App, cmd *cobra.Command) *cobra.Command {
	cmd.Args = cli.Args(1, 1, "the feed's NAME")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.name = args[0]
		return o.run(cmd.Context(), a)
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.logins.Writers, "writer", nil, "a `login` that writes; may be given more than once")
	f.StringArrayVar(&o.logins.Readers, "reader", nil, "a `login` that reads; may be given more than once")
	f.BoolVar(&o.print, "print", false, "print the SQL instead of running it; needs a server")
	a.AddOutput(cmd, false)
	return cmd
}

func (o *grantOptions) run(ctx context.Context, a *cli.App) error {
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		if o.print {
			d, err := open.Dialect(a.URL)
			if err != nil {
				return err
			}
			steps, err := f.Admin().PrintGrants(ctx, o.logins, o.revoke)
			if err != nil {
				return err
			}
			return PrintScript(a, d, steps)
		}
		change := f.Admin().Grant
		if o.revoke {
			change = f.Admin().Revoke
		}
		if err := change(ctx, o.logins); err != nil {
			return err
		}
		g := f.Admin().Granted()
		if a.JSON {
			return a.PrintJSON(struct {
				Feed    string   `json:"feed"`
				Writers []string `json:"writers"`
				Readers []string `json:"readers"`
			}{o.name, append([]string{}, g.Writers...), append([]string{}, g.Readers...)})
		}
		return a.PrintLine("%s: writers: %s; readers: %s; grant rights on table %s yourself",
			o.name, loginsText(g.Writers), loginsText(g.Readers), f.Source())
	})
}

func loginsText(logins []string) string {
	if len(logins) == 0 {
		return "none"
	}
	return strings.Join(logins, ", ")
}
