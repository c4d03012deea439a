package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/internal/sinks"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// App is one run of rowfeed. All commands share it: it has the outputs, the environment and the global flags.
type App struct {
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	// Ask shows a question and returns the line with which the user answers. It is nil if there is no terminal.
	Ask func(ctx context.Context, question string) (answer string, err error)

	DB, prefix, schema OptionalText
	ConfigPath         string
	unsafeDurability   bool
	Replica            bool
	NoPublish          bool
	WithoutLease       bool // a flag of publish and serve only
	JSON               bool // print JSON, of the commands with AddOutput
	wide               bool // print all columns of tables
	watch              bool // print again and again, of the commands with AddWatch
	verbose            bool
	logFormat          oneOf
	logLevel           oneOf

	repeated bundle                  // of the log
	act      *act                    // the entry of the audit log for this run; nil if the command has none
	recorded map[*cobra.Command]bool // the commands that the audit log records
	Metrics  *metrics.Metrics        // nil if the command has no metrics
	Tracer   rowfeed.Tracer          // nil unless the environment asks for traces

	Command string // the path of the command that ran, as in "rowfeed feed add"

	// URL is the database's. Settings sets it. Messages do not show its password.
	URL string
	// SecretURLs are other URLs whose passwords messages do not show.
	SecretURLs []string

	// OnPublish is called with every committed batch. Only tests set it, and the fields below.
	OnPublish func(rowfeed.PublishEvent)
	// OnListen is called with the address on which a server listens.
	OnListen func(address string)
	// OnBench is called with the step that a bench begins.
	OnBench func(what string)
	// CompletionTimeout bounds how long a completion waits for the database. 0 is the default.
	CompletionTimeout time.Duration
}

// Settings returns the library's configuration and rowfeed.yaml. It sets a.URL: to --db, else to ROWFEED_DB, else to
// the file's db.
func (a *App) Settings() (rowfeed.Config, *config.File, error) {
	file, err := config.Load(a.ConfigPath)
	if err != nil {
		return rowfeed.Config{}, nil, err
	}
	var env *string
	if v := a.Getenv(config.EnvDB); v != "" {
		env = &v
	}
	if a.URL, err = sinks.Resolve("db", config.First(config.DefaultDB, a.DB.Value, env, file.DB),
		a.Getenv); err != nil {
		return rowfeed.Config{}, nil, err
	}
	a.URL = strings.TrimSpace(a.URL)
	cfg, err := a.LibraryConfig(file)
	return cfg, file, err
}

// LibraryConfig returns the library's configuration, from the flags and the file.
func (a *App) LibraryConfig(file *config.File) (rowfeed.Config, error) {
	cfg := rowfeed.Config{UnsafeDurability: a.unsafeDurability, Replica: a.Replica, NoPublish: a.NoPublish,
		Tracer: a.Tracer, Schema: config.First("", a.schema.Value, file.Schema)}
	if a.WithoutLease {
		cfg.PublisherLease = rowfeed.NoLease
	}
	if prefix := a.prefix.Value; prefix != nil || file.Prefix != nil {
		cfg.Prefix = config.First("", prefix, file.Prefix)
		switch cfg.Prefix {
		case "":
			cfg.Prefix = rowfeed.NoPrefix
		case rowfeed.NoPrefix:
			return cfg, &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "prefix",
				Cause: `prefix: "-" cannot start a name`, Next: "give an empty prefix for names without one"}
		}
	}
	return cfg, nil
}

// AddFlags adds the flags that all commands share.
func (a *App) AddFlags(flags *pflag.FlagSet) {
	flags.Var(&a.DB, "db",
		"database `URL`: "+open.Forms+"; env:NAME and file:PATH name a variable or a file that has it "+
			"(default "+config.DefaultDB+")")
	flags.Var(&a.prefix, "prefix", "the `prefix` of the names of rowfeed's tables, may be empty (default rowfeed_)")
	flags.Var(&a.schema, "schema", "`schema` of rowfeed's tables (default: the connection's)")
	flags.StringVar(&a.ConfigPath, "config", "", "configuration `file` (default rowfeed.yaml, if it exists)")
	flags.BoolVar(&a.unsafeDurability, "unsafe-durability", false,
		"accept a server that may lose commits at a power failure")
	flags.BoolVar(&a.NoPublish, "no-publish", false,
		"do not publish, and do not move outbox records: other processes do")
	flags.BoolVar(&a.Replica, "replica", false,
		"the database is a replica: only serve and read its pages, which may lag behind")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log more, to stderr: the same as --log-level debug")
	a.logFormat.of, a.logLevel.of = logFormats, logLevels
	flags.Var(&a.logFormat, "log-format", "`form` of the log on stderr, text or json (default text)")
	flags.Var(&a.logLevel, "log-level",
		"the lowest `level` that is logged: debug, info, warn or error (default info; demo: warn)")
}
