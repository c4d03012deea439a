package feeds

import (
	"context"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/spf13/cobra"
)

type feedBumpOptions struct {
	name    string
	adopt   bool
	print   bool
	consent cli.Consent
}

func newFeedBump(a *cli.App) *cobra.Command {
	o := &feedBumpOptions{}
	cmd := &cobra.Command{
		Use:   "bump NAME",
		Short: "Begin a new generation: all consumers start over",
		Long: `Begins a new generation of the feed. Cursors of the former generation are refused with
409 generation-changed. Consumers then start at the beginning (after="") and remove
rows that the new pass does not deliver.

A restored backup, or a failover that lost commits, needs no bump: a cursor names the
head that was read and that head's term, and a feed knows which terms it has and how far
they went. Only consumers that have read what was lost are refused (409 history-lost)
and start over; all others continue. Bump a feed if all consumers are to start over.

A feed with ULIDs has no terms. It stops with database-changed if the database was
replaced or set back. Bump it if commits may have been lost. If none was, record with
--adopt-database that the feed belongs to this database: generation and cursors stay.

On a terminal it says which consumers must begin again, and asks, unless --yes is given.
--dry-run only says so.

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
		"feed with ULIDs: no commit was lost, only record that the feed belongs to this database")
	cmd.Flags().BoolVar(&o.print, "print", false, "print the SQL instead; needs no server")
	a.AddOutput(cmd, false)
	o.consent.Bind(cmd)
	return cmd
}

func (o *feedBumpOptions) run(ctx context.Context, a *cli.App) error {
	if o.print {
		return o.printSQL(a)
	}
	return a.WithFeed(ctx, o.name, func(s *cli.Session, f *rowfeed.Feed) error {
		if a.Ask != nil || o.consent.DryRun {
			done, err := o.confirm(ctx, a, s)
			if done || err != nil {
				return err
			}
		}
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
		case a.JSON:
			return a.PrintJSON(struct {
				Feed       string `json:"feed"`
				Generation int64  `json:"generation"`
				Changed    bool   `json:"changed"`
			}{o.name, f.Generation(), changed})
		case !changed && f.Mode() == rowfeed.ModeSequence:
			return a.PrintLine("%s: nothing changed: --adopt-database is for feeds with ULIDs; "+
				"a feed of mode %s detects lost commits itself",
				o.name, f.Mode())
		case !changed:
			return a.PrintLine("%s: belongs to this database already, nothing changed", o.name)
		case o.adopt:
			return a.PrintLine("%s: belongs to this database from now on; cursors stay valid", o.name)
		}
		return a.PrintLine("%s: generation %d; older cursors are refused, consumers start at the beginning",
			o.name, f.Generation())
	})
}

// confirm says who must begin again, and asks. done means that this was all that the command was to do.
func (o *feedBumpOptions) confirm(ctx context.Context, a *cli.App, s *cli.Session) (done bool, err error) {
	effect := "Generation and cursors stay."
	if !o.adopt {
		if effect, err = startingOver(ctx, s, o.name); err != nil {
			return false, err
		}
	}
	switch {
	case o.consent.DryRun:
		return true, a.PrintLine("%s: %s Nothing was changed.", o.name, effect)
	case o.adopt: // no reader notices it
		return false, nil
	}
	return false, a.Confirm(ctx, o.consent, o.name, "begin a new generation", effect)
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
