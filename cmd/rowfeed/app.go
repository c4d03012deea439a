package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"syscall"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/internal/sinks"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// app is what the commands share: where output goes, and the global flags.
type app struct {
	stdout, stderr io.Writer
	getenv         func(string) string

	db, prefix, schema optionalText
	configPath         string
	unsafeDurability   bool
	replica            bool
	noPublish          bool
	withoutLease       bool // of publish and serve
	verbose            bool
	logFormat          oneOf
	logLevel           oneOf

	act       *act             // that is recorded while it runs; nil: none
	metrics   *metrics.Metrics // of what tells them; nil else
	metricsAt optionalText     // of publish and relay
	tracer    rowfeed.Tracer   // nil unless the environment asks for traces

	command string // that runs, for messages: "rowfeed feed add"

	url string // of the database, once decided; its password is kept out of messages

	// hidden are other URLs whose passwords are kept out of messages.
	hidden []string

	// published is told of every committed batch; for tests.
	published func(rowfeed.PublishEvent)
	// serving is told the address of a server's listener; for tests.
	serving func(address string)
	// benching is told what a bench begins; for tests.
	benching func(what string)
	// completing is in the place of completionTime; for tests.
	completing time.Duration
}

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

// group makes a command that only holds others.
func group(use, short, long, example string) *cobra.Command {
	return &cobra.Command{Use: use, Short: short, Long: long, Example: example, Args: cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		}}
}

func unknownCommand(parent *cobra.Command, name string) error {
	hint := ""
	if near := parent.SuggestionsFor(name); len(near) > 0 {
		hint = fmt.Sprintf(" (is %s meant?)", strings.Join(near, " or "))
	}
	return usage(parent, "there is no command %q%s", parent.CommandPath()+" "+name, hint)
}

// usageError is a wrong use of the command line.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string {
	return fmt.Sprintf("%v. Next: see `%s --help`", e.err, e.command)
}

func (e *usageError) Unwrap() error { return e.err }

func usage(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{cmd.CommandPath(), fmt.Errorf(format, args...)}
}

// takes checks the number of arguments and names what is missing.
func takes(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage(cmd, "%s: %s is missing", cmd.CommandPath(), what)
		case len(args) > most:
			return usage(cmd, "%s: %q is one argument too many", cmd.CommandPath(), args[most])
		}
		return nil
	}
}

// report prints an error and answers the exit code.
func (a *app) report(ctx context.Context, err error) int {
	switch {
	case err == nil || errors.Is(err, syscall.EPIPE): // whoever read the output has gone
		return exitDone
	case ctx.Err() != nil:
		fmt.Fprintln(a.stderr, "rowfeed: interrupted")
		return exitFailed
	}
	text, code := a.plain(err), exitFailed
	var wrong *usageError
	if errors.As(err, &wrong) || errors.Is(err, rowfeed.InvalidRequest) {
		code = exitUsage
		if !strings.Contains(text, ". Next: ") {
			text += ". Next: see `" + cmp.Or(a.command, "rowfeed") + " --help`"
		}
	}
	fmt.Fprintln(a.stderr, "rowfeed: "+text)
	return code
}

// settings decides which database and names are meant, and writes them down in a.
func (a *app) settings() (rowfeed.Config, *config.File, error) {
	file, err := config.Load(a.configPath)
	if err != nil {
		return rowfeed.Config{}, nil, err
	}
	var env *string
	if v := a.getenv(config.EnvDB); v != "" {
		env = &v
	}
	if a.url, err = sinks.Resolve("db", config.First(config.DefaultDB, a.db.value, env, file.DB),
		a.getenv); err != nil {
		return rowfeed.Config{}, nil, err
	}
	cfg, err := a.library(file)
	return cfg, file, err
}

// library are the settings that the library takes.
func (a *app) library(file *config.File) (rowfeed.Config, error) {
	cfg := rowfeed.Config{UnsafeDurability: a.unsafeDurability, Replica: a.replica, NoPublish: a.noPublish,
		Tracer: a.tracer, Schema: config.First("", a.schema.value, file.Schema)}
	if a.withoutLease {
		cfg.PublisherLease = rowfeed.NoLease
	}
	if prefix := a.prefix.value; prefix != nil || file.Prefix != nil {
		cfg.Prefix = config.First("", prefix, file.Prefix)
		switch cfg.Prefix {
		case "":
			cfg.Prefix = rowfeed.NoPrefix
		case rowfeed.NoPrefix:
			return cfg, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "prefix",
				Cause: `prefix: "-" cannot start a name`, Next: "give an empty one for none"}
		}
	}
	return cfg, nil
}

// session is rowfeed on an open database.
type session struct {
	*rowfeed.DB
	file *config.File
	log  *slog.Logger
	done func() error
}

// connect opens the database, which must be there already.
func (a *app) connect(ctx context.Context) (*session, error) {
	return a.connectTo(ctx, open.Options{MustExist: true})
}

func (a *app) connectTo(ctx context.Context, o open.Options) (*session, error) {
	cfg, file, err := a.settings()
	if err != nil {
		return nil, err
	}
	log := a.logger(file, "info")
	cfg.Observer = a.observer(log)
	pool, d, err := open.Open(ctx, a.url, o)
	if err != nil {
		return nil, err
	}
	db, err := rowfeed.Open(ctx, pool, d, &cfg)
	if err != nil {
		pool.Close()
		return nil, err
	}
	s := &session{DB: db, file: file, log: log, done: pool.Close}
	a.beginAct(ctx, s)
	return s, nil
}

// withFeed runs fn with a feed of the database.
func (a *app) withFeed(ctx context.Context, name string, fn func(*session, *rowfeed.Feed) error) error {
	s, err := a.connect(ctx)
	if err != nil {
		return err
	}
	defer s.done()
	f, err := s.Feed(ctx, name)
	if err != nil {
		return err
	}
	return fn(s, f)
}

// observer logs what the library tells of, and counts it for whoever serves metrics.
func (a *app) observer(log *slog.Logger) *rowfeed.Observer {
	if a.metrics == nil {
		return a.logging(log)
	}
	return rowfeed.Observers(a.logging(log), a.metrics.Observer())
}

func (a *app) logging(log *slog.Logger) *rowfeed.Observer {
	return &rowfeed.Observer{
		Published: func(e rowfeed.PublishEvent) {
			log.Debug("published", "feed", e.Feed, "changes", e.Changes, "keys", e.Keys, "head", e.Head, "took", e.Took)
			if a.published != nil {
				a.published(e)
			}
		},
		Fetched: func(e rowfeed.FetchEvent) {
			log.Debug("fetched", "feed", e.Feed, "entries", e.Entries, "vanished", e.Vanished, "took", e.Took)
		},
		Retried: func(e rowfeed.RetryEvent) {
			log.Debug("retried", "doing", e.Doing, "attempt", e.Attempt, "error", e.Err)
		},
		Lease: func(e rowfeed.LeaseEvent) {
			if e.Mine {
				log.Info("it is this process's turn to publish", "feed", e.Feed, "epoch", e.Epoch)
			} else {
				log.Info("standing by: another process publishes",
					"feed", e.Feed, "owner", e.Owner, "epoch", e.Epoch, "since", e.Since)
			}
		},
		Job: func(e rowfeed.JobEvent) {
			switch {
			case e.Kind == rowfeed.JobStandsBy && e.Job < 0:
				log.Info("standing by: other processes have all shards", "group", e.Group, "shard_count", e.Jobs)
				return
			case e.Kind == rowfeed.JobStandsBy:
				log.Info("waiting for a shard that another process has",
					"group", e.Group, "shard", e.Job, "shard_count", e.Jobs, "owner", e.Owner, "epoch", e.Epoch)
				return
			}
			text := map[rowfeed.JobEventKind]string{rowfeed.JobBegun: "this process has a shard",
				rowfeed.JobHandedOver: "a shard was handed over to another process",
				rowfeed.JobLost: "a shard was lost: " +
					"its lease is over", rowfeed.JobEnded: "a shard is left to others"}[e.Kind]
			level := slog.LevelInfo
			if e.Kind == rowfeed.JobLost {
				level = slog.LevelWarn
			}
			log.Log(context.Background(), level, text, "group", e.Group, "shard", e.Job, "shard_count", e.Jobs, "epoch",
				e.Epoch)
		},
		Trouble: func(e rowfeed.TroubleEvent) {
			attributes := []any{"feed", e.Feed, "error", e.Err}
			if e.Consumer != "" {
				attributes = append(attributes, "consumer", e.Consumer)
			}
			if e.ShardCount > 1 {
				attributes = append(attributes, "shard", e.Shard, "shard_count", e.ShardCount)
			}
			log.Warn("trouble", attributes...)
		},
	}
}

// plain is an error's text for a log or a terminal: no password, and nothing that it would obey.
func (a *app) plain(err error) string { return a.plainText(err.Error()) }

func (a *app) plainText(text string) string {
	text = open.ScrubText(a.url, text)
	for _, url := range a.hidden {
		text = open.ScrubText(url, text)
	}
	return tamed(text)
}
