package main

import (
	"github.com/spf13/cobra"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/feeds"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/operate"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/service"
)

// newRoot makes the tree of commands.
func newRoot(a *cli.App) *cobra.Command {
	root := cli.NewGroup("rowfeed", "Turn the tables of a SQL database into change feeds",
		`rowfeed turns tables of an ordinary SQL database (SQLite, PostgreSQL, MySQL,
MariaDB) into change feeds that nobody can miss a row of.

Triggers record which keys were written; a publisher gives every key a position
after the commit; readers fetch "position > cursor", page by page.

The database is named by --db, else by the environment variable ROWFEED_DB, else by
rowfeed.yaml in the working directory ("rowfeed config reference" has its keys), else
it is sqlite:rowfeed.db. In each of these places env:NAME and file:PATH name a variable
or a file that has the URL: a password in a command line is seen by everyone on the
machine.

Exit codes: 0 done, 1 failed, 2 wrong usage.`,
		`  rowfeed demo                                    # see it run: no database needed
  rowfeed init                                    # rowfeed's own tables
  rowfeed feed add kv --table kv                  # follow the table kv
  rowfeed publish --once                          # give positions to what was written
  rowfeed fetch kv --limit 10                     # read a page
  rowfeed serve                                   # publish, and serve over HTTP`)
	root.SilenceUsage, root.SilenceErrors = true, true
	root.Version = buildOf().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
			return cli.UnknownCommand(cmd, args[0]) // whose flag it may be
		}
		return cli.WrongUse(cmd, "%s: %v", cmd.CommandPath(), err)
	})
	a.AddFlags(root.PersistentFlags())
	root.AddCommand(feeds.Commands(a)...)
	root.AddCommand(service.Commands(a)...)
	root.AddCommand(read.Commands(a)...)
	root.AddCommand(operate.Commands(a)...)
	root.AddCommand(newConform(a), newBench(a), newConfig(a), newDocs(a), newCompletion(a), newVersion(a))
	a.Record(root, administrative)
	complete(a, root)
	return root
}

// administrative are the commands that are in the audit log: whatever an operator changes
// with the feeds and those who read them. What publishes, reads or receives is in no log.
var administrative = []string{
	"init", "migrate up", "migrate down",
	"feed add", "feed drop", "feed upgrade", "feed bump", "feed backfill", "feed grant", "feed revoke",
	"repair", "republish", "unpublish", "unblock",
	"consumer pause", "consumer resume", "consumer reset", "consumer drop", "consumer seek", "consumer purge",
	"dead retry", "dead drop", "lease release",
	"token add", "token revoke", "audit purge",
}
