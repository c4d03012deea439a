package feeds

import (
	"context"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

type feedBumpOptions struct {
	name  string
	adopt bool
	print bool
	json  bool
}

func newFeedBump(a *cli.App) *cobra.Command {
	o := &feedBumpOptions{}
	cmd := &cobra.Command{
		Use:   "bump NAME",
		Short: "Tell consumers that commits were lost: they start over",
		Long: `Gives the feed a new generation. Cursors of the generation before are then refused
with 409 generation-changed, and consumers start at the beginning (after="") and remove
what the new pass does not bring.

Do it after a backup was restored, and after a failover in which the last commits of
the old primary may have been lost: positions that consumers know of would be given
again, to other rows. Publishers that can tell (PostgreSQL by system and timeline,
MariaDB and MySQL by server id, every one by what it has seen) stop and ask for it.
Nothing can tell of a dump that was loaded into the tables, or of a SQLite file that was
put in another's place while nothing ran: bump every feed then.

With --adopt-database generation and cursors stay: the database has moved, or a replica
has taken over, with every commit that there was.

With --json: {"feed":"kv","generation":1767225600,"changed":true}.`,
		Example: `  rowfeed feed bump kv
  rowfeed feed bump kv --adopt-database
  rowfeed feed bump kv --print`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context(), a)
		},
	}
	cmd.Flags().BoolVar(&o.adopt, "adopt-database", false,
		"nothing was lost: only take this database for the feed's own")
	cmd.Flags().BoolVar(&o.print, "print", false, "print the SQL instead; needs no server")
	cmd.Flags().BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (o *feedBumpOptions) run(ctx context.Context, a *cli.App) error {
	if o.print {
		return o.printSQL(a)
	}
	return a.WithFeed(ctx, o.name, func(_ *cli.Session, f *rowfeed.Feed) error {
		changed := true
		var err error
		if o.adopt {
			changed, err = f.Admin().AdoptDatabase(ctx)
		} else {
			_, err = f.Admin().Bump(ctx)
		}
		if err != nil {
			return err
		}
		switch {
		case o.json:
			return a.PrintJSON(struct {
				Feed       string `json:"feed"`
				Generation int64  `json:"generation"`
				Changed    bool   `json:"changed"`
			}{o.name, f.Generation(), changed})
		case !changed:
			return a.PrintLine("%s: is in its own database already, nothing changed", o.name)
		case o.adopt:
			return a.PrintLine("%s: this database is its own from now on; cursors stay as they are", o.name)
		}
		return a.PrintLine("%s: generation %d; cursors of before are refused, consumers start at the beginning",
			o.name, f.Generation())
	})
}

func (o *feedBumpOptions) printSQL(a *cli.App) error {
	cfg, _, err := a.Settings()
	if err != nil {
		return err
	}
	d, err := open.Dialect(a.URL)
	if err != nil {
		return err
	}
	steps, err := rowfeed.PrintBump(d, &cfg, o.name, o.adopt)
	if err != nil {
		return err
	}
	return PrintScript(a, d, steps)
}
