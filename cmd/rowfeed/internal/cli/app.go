package cli

import (
	"io"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/internal/sinks"
	"github.com/rowfeed/rowfeed/cmd/metrics"
	"github.com/spf13/pflag"
)

// app is what the commands share: where output goes, and the global flags.
type App struct {
	Stdout, Stderr io.Writer
	Getenv         func(string) string

	DB, prefix, schema OptionalText
	ConfigPath         string
	unsafeDurability   bool
	Replica            bool
	NoPublish          bool
	WithoutLease       bool // of publish and serve
	verbose            bool
	logFormat          oneOf
	logLevel           oneOf

	act     *act             // that is recorded while it runs; nil: none
	Metrics *metrics.Metrics // of what tells them; nil else
	Tracer  rowfeed.Tracer   // nil unless the environment asks for traces

	Command string // that runs, for messages: "rowfeed feed add"

	URL string // of the database, once decided; its password is kept out of messages

	// hidden are other URLs whose passwords are kept out of messages.
	SecretURLs []string

	// published is told of every committed batch; for tests.
	OnPublish func(rowfeed.PublishEvent)
	// serving is told the address of a server's listener; for tests.
	OnListen func(address string)
	// benching is told what a bench begins; for tests.
	OnBench func(what string)
	// completing is in the place of completionTime; for tests.
	CompletionTimeout time.Duration
}

// settings decides which database and names are meant, and writes them down in a.
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
	cfg, err := a.LibraryConfig(file)
	return cfg, file, err
}

// library are the settings that the library takes.
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
				Cause: `prefix: "-" cannot start a name`, Next: "give an empty one for none"}
		}
	}
	return cfg, nil
}

// addFlags adds the flags that all commands share.
func (a *App) AddFlags(flags *pflag.FlagSet) {
	flags.Var(&a.DB, "db",
		"database `URL`: "+open.Forms+"; env:NAME and file:PATH name where it stands (default "+config.DefaultDB+")")
	flags.Var(&a.prefix, "prefix", "what the `names` of rowfeed's tables start with, may be empty (default rowfeed_)")
	flags.Var(&a.schema, "schema", "`schema` of rowfeed's tables (default: the connection's)")
	flags.StringVar(&a.ConfigPath, "config", "", "configuration `file` (default rowfeed.yaml, where there is one)")
	flags.BoolVar(&a.unsafeDurability, "unsafe-durability", false,
		"accept a server that may forget commits after a power cut")
	flags.BoolVar(&a.NoPublish, "no-publish", false, "leave publishing, and the moving of outbox records, to others")
	flags.BoolVar(&a.Replica, "replica", false, "the database is a replica: serve and read pages only, which may lag")
	flags.BoolVarP(&a.verbose, "verbose", "v", false, "log more, to stderr: the same as --log-level debug")
	a.logFormat.of, a.logLevel.of = logFormats, logLevels
	flags.Var(&a.logFormat, "log-format", "`form` of the log on stderr, text or json (default text)")
	flags.Var(&a.logLevel, "log-level",
		"the `least` that is logged: debug, info, warn or error (default info; of the demo warn)")
}
