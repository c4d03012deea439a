package main

import (
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/spf13/cobra"
)

// newRoot makes the tree of commands.
func newRoot(a *app) *cobra.Command {
	root := group("rowfeed", "Turn the tables of a SQL database into change feeds",
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
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if args := cmd.Flags().Args(); cmd.HasSubCommands() && len(args) > 0 {
			return unknownCommand(cmd, args[0]) // whose flag it may be
		}
		return usage(cmd, "%s: %v", cmd.CommandPath(), err)
	})
	flags := root.PersistentFlags()
	flags.Var(&a.db, "db",
		"database `URL`: "+open.Forms+"; env:NAME and file:PATH name where it stands (default "+config.DefaultDB+")")
	flags.Var(&a.prefix, "prefix", "what the `names` of rowfeed's tables start with, may be empty (default rowfeed_)")
	flags.Var(&a.schema, "schema", "`schema` of rowfeed's tables (default: the connection's)")
	flags.StringVar(&a.configPath, "config", "", "configuration `file` (default rowfeed.yaml, where there is one)")
	flags.BoolVar(&a.unsafeDurability, "unsafe-durability", false,
		"accept a server that may forget commits after a power cut")
	flags.BoolVar(&a.noPublish, "no-publish", false, "leave publishing, and the moving of outbox records, to others")
	flags.BoolVar(&a.replica, "replica", false, "the database is a replica: serve and read pages only, which may lag")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log more, to stderr: the same as --log-level debug")
	a.logFormat.of, a.logLevel.of = logFormats, logLevels
	flags.Var(&a.logFormat, "log-format", "`form` of the log on stderr, text or json (default text)")
	flags.Var(&a.logLevel, "log-level",
		"the `least` that is logged: debug, info, warn or error (default info; of the demo warn)")
	root.AddCommand(newDemo(a), newInit(a), newMigrate(a), newFeed(a), newPublish(a), newServe(a), newReady(a),
		newFetch(a), newTail(a),
		newRepublish(a), newUnpublish(a), newRelay(a), newConsumer(a), newDead(a), newCheck(
			a,
		), newRepair(a), newStatus(a), newUnblock(a), newLease(a), newToken(a), newAudit(a), newConform(a), newBench(a),
		newConfig(a), newDocs(a), newCompletion(a), newVersion(a))
	a.audit(root)
	a.complete(root)
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
