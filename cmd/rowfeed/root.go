package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/feeds"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/operate"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/read"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/service"
)

// newRoot returns the command rowfeed with all its subcommands.
func newRoot(a *cli.App) *cobra.Command {
	root := cli.NewGroup("rowfeed", "Turn the tables of a SQL database into change feeds",
		`rowfeed turns tables of an ordinary SQL database (SQLite, PostgreSQL, MySQL,
MariaDB, and with --experimental SQL Server) into change feeds. A reader of a feed
misses no row.

Triggers record which keys were written. After the commit, a publisher gives every key
a position. Readers fetch "position > cursor", page by page.

The database is given by --db, else by the environment variable ROWFEED_DB, else by
rowfeed.yaml in the working directory ("rowfeed config reference" explains its keys),
else it is sqlite:rowfeed.db. Each of these can be a URL, or env:NAME or file:PATH for a
variable or a file that has the URL. Every user of a machine can see a password on a
command line.

Every flag has an environment variable: --shard-count has ROWFEED_SHARD_COUNT. A flag
overrides its variable, and a variable overrides rowfeed.yaml. ROWFEED_TOKEN contains
the token itself. A command that the audit log records, such as "consumer reset", reads
its own flags only from the command line, except -o.

Exit codes: 0 done, 1 failed, 2 wrong usage.`,
		`  rowfeed demo                                    # try rowfeed: no database needed
  rowfeed init                                    # create rowfeed's own tables
  rowfeed feed add kv --table kv                  # follow the table kv
  rowfeed publish --once                          # give positions to changes
  rowfeed fetch kv --limit 10                     # read a page
  rowfeed serve                                   # publish, and serve over HTTP`)
	root.SilenceUsage, root.SilenceErrors = true, true
	root.Version = buildOf().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	root.SetFlagErrorFunc(cli.FlagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error { return a.Environment(cmd) }
	a.AddFlags(root.PersistentFlags())
	root.AddCommand(feeds.Commands(a)...)
	root.AddCommand(service.Commands(a)...)
	root.AddCommand(read.Commands(a)...)
	root.AddCommand(operate.Commands(a)...)
	root.AddCommand(newConform(a), newBench(a), newConfig(a), newDocs(a), newCompletion(a), newVersion(a))
	group(root)
	a.Record(root, administrative)
	complete(a, root)
	return root
}

// groups are the commands of --help, in groups.
var groups = []struct{ title, commands string }{
	{"Set up:", "init migrate feed token config"},
	{"Run:", "serve publish relay demo"},
	{"Operate:", "consumer dead lease republish unpublish repair unblock"},
	{"Look:", "status check fetch tail ready audit conform bench"},
	{"More:", "docs completion version help"},
}

// group sorts the commands of --help, and wraps its lines of flags like its other texts.
func group(root *cobra.Command) {
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range root.Commands() {
			if slices.Contains(strings.Fields(g.commands), c.Name()) {
				c.GroupID = g.title
			}
		}
	}
	root.SetHelpCommandGroupID("More:")
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 88"))
}

// refuseUnknownHelp makes "rowfeed help" refuse a command that does not exist, in place of showing its group's help.
func refuseUnknownHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, _ := root.Find([]string{"help"})
	help.Args = func(_ *cobra.Command, args []string) error {
		if cmd, rest, err := root.Find(args); err == nil && cmd.HasSubCommands() && len(rest) > 0 {
			return cli.UnknownCommand(cmd, rest[0])
		}
		return nil
	}
}

// administrative are the commands that the audit log records: those with which an operator changes feeds, consumers,
// leases or tokens. Commands that publish, read or deliver are not recorded.
var administrative = []string{
	"init", "migrate up", "migrate down",
	"feed add", "feed drop", "feed upgrade", "feed bump", "feed backfill", "feed grant", "feed revoke",
	"repair", "republish", "unpublish", "unblock",
	"consumer pause", "consumer resume", "consumer reset", "consumer drop", "consumer seek", "consumer purge",
	"dead retry", "dead drop", "lease release",
	"token add", "token revoke", "audit purge",
}
