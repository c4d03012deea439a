package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/internal/config"
	"github.com/rowfeed/rowfeed/cmd/internal/open"
	"github.com/rowfeed/rowfeed/cmd/internal/sinks"
	"github.com/rowfeed/rowfeed/cmd/relay"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/feedhttp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// relayOptions are the options of a relay, from the command line or rowfeed.yaml.
type relayOptions struct {
	config.Relay
	once bool
	url  string
	// keep is relay.Relay.KeepShardCount: true once this process has run the relay.
	keep    bool
	metrics metricsFlag
}

const relayHelp = `Delivers a feed until it is interrupted. --to is the URL of the receiver:

  stdout:                                entry lines, NDJSON
  https://host/path                      webhook: POST of batches, signed according to
                                         Standard Webhooks; private addresses need
                                         --allow-private
  nats://host:4222/subject               NATS JetStream, de-duplicated by Msg-Id;
                                         ?creds=FILE, ?tls=true
  kafka://host:9092,host:9092/topic      Kafka, keyed by the row's key, a null for a
                                         delete; ?tls=true, ?mechanism=scram-sha-256
  postgres://host/database?table=orders  mirror: a table of another database that
                                         follows the feed (sqlite: and mysql: as well);
                                         the table must exist, with the same columns
                                         and primary key

Every entry arrives at least once, and the versions of a row arrive in their order. In a
mirror each entry takes effect exactly once. After a new pass from the beginning, the
relay removes rows of the mirror that the pass did not deliver. The relay's cursor is
stored under its --consumer name, in the feed's database or in the mirror's: see
"rowfeed consumer". Of several relays with the same name one works. The others stand by,
and log that; this is also true with --once.

With --shard-count N several relays of one name share the work. One of them has to give
N, or all give the same. The feed's keys are divided into N shards (at most the feed's
data shards). Each shard has a cursor, a lease and its own batches. After a process
starts or ends, every process has its even share of the shards within three times
--lease. "rowfeed status" and "rowfeed lease list" show which process has which shards,
and since when. The versions of a row keep their order; rows of different shards have no
order. A mirror and stdout have N = 1. A new N divides the keys again, from the lowest
cursors: some entries are delivered again. Processes that were started with the former N
end, including those that stand by. In "rowfeed serve" such a relay stops until the
server is started again.

For a feed with ULIDs, N is the number of workers that share the feed's shards; each
shard is a feed of its own, and a new N moves no cursor. A mirror of such a feed keeps
rows that the feed has lost, and ends if a cursor is refused. A shard that has missed
purged entries stops, and the other shards continue.

If a receiver cannot be reached, the relay waits for it. If a receiver refuses an entry,
the relay ends after some attempts; with --set-aside the entry becomes a dead letter
instead: see "rowfeed dead". With several shards, only the shard of that entry stops,
and the relay tries the entry again from time to time: "rowfeed consumer list" shows
the reason.

Keep secrets out of the command line: --to and --secret also accept env:NAME and
file:PATH. --metrics works as in "rowfeed publish".

"rowfeed serve" runs the relays under the key relays of rowfeed.yaml. "rowfeed config
reference" explains their keys:

  relays:
    - feed: orders
      to: https://example.com/hook
      secret: [file:/run/secrets/hook]
      set_aside: true`

func newRelay(a *cli.App) *cobra.Command {
	o := &relayOptions{}
	cmd := &cobra.Command{
		Use:   "relay NAME --to URL",
		Short: "Deliver a feed: webhooks, NATS, Kafka, another database's table, stdout",
		Long:  relayHelp,
		Example: `  rowfeed relay kv --to stdout: --once
  rowfeed relay kv --to https://example.com/hook --secret env:HOOK_SECRET
  rowfeed relay kv --to 'postgres://me@localhost/copy?table=kv'
  rowfeed relay kv --to env:KAFKA_URL --consumer warehouse --after now`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Feed = args[0]
			if o.To == "" {
				return cli.WrongUse(cmd, "--to is missing: %s", sinks.Forms)
			}
			if cmd.Flags().Changed("shard-count") && (o.ShardCount < 1 || o.ShardCount > rowfeed.MaxDataShards) {
				return &rowfeed.Error{
					Code: rowfeed.InvalidRequest, Param: "shard-count", Object: fmt.Sprintf("feed %q", o.Feed),
					Cause: fmt.Sprintf("--shard-count %d is not between 1 and %d", o.ShardCount, rowfeed.MaxDataShards),
					Next:  "give the number of shards that the processes share, at most the feed's data shards",
				}
			}
			return o.run(cmd.Context(), a)
		},
	}
	o.addFlags(cmd.Flags())
	o.metrics.add(cmd)
	return cmd
}

func (o *relayOptions) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.To, "to", "", "`URL` of the receiver, or env:NAME, or file:PATH")
	flags.StringVar(&o.Consumer, "consumer", "",
		"`name` under which the relay stores its cursor (default: a name made from the URL)")
	flags.StringVar(&o.After, "after", "",
		`where a new relay begins: "now", or "at:" with an RFC 3339 time (default: the beginning)`)
	flags.IntVar(&o.Limit, "limit", 0, "maximum number of entries in a batch (default 500)")
	flags.IntVar(&o.ShardCount, "shard-count", 0, "divide the feed into this number of `shards`, "+
		"which all relays of the name share (default: the relay's present number, 1 for a new relay)")
	flags.BoolVar(&o.SetAside, "set-aside", false, "set keys aside whose entries are refused, and continue")
	flags.BoolVar(&o.Restart, "restart", false,
		"begin again if the cursor is refused, instead of ending (mirrors always do, except of feeds with ULIDs)")
	flags.DurationVar(&o.Lease, "lease", 0, "`time` that a claim on a lease lasts without renewal; "+
		"a killed relay is replaced shortly after this time (default 10s)")
	flags.StringSliceVar(&o.Secret, "secret", nil,
		"sign a webhook's requests with this `secret`, env:NAME or file:PATH; give several to rotate secrets")
	flags.BoolVar(&o.AllowPrivate, "allow-private", false, "allow a webhook on this machine or in a private network")
	flags.Float64Var(&o.Rate, "rate", 0, "maximum `requests` per second to a webhook")
	flags.BoolVar(&o.once, "once", false, "deliver the entries that there are, and end")
	flags.StringVar(&o.url, "url", "", "read from the server at this `URL` instead of the database")
}

// resolve replaces env:NAME and file:PATH by their values. It registers the URL of the receiver, so that no message
// shows the password in it.
func (o *relayOptions) resolve(a *cli.App) (err error) {
	if o.To, err = sinks.Resolve("to", o.To, a.Getenv); err != nil {
		return err
	}
	a.SecretURLs = append(a.SecretURLs, o.To)
	for i, text := range o.Secret {
		if o.Secret[i], err = sinks.Resolve("secret", text, a.Getenv); err != nil {
			return err
		}
	}
	if o.Consumer == "" {
		o.Consumer = sinks.DefaultName(o.To)
	}
	refuse := func(cause string) error {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "shard-count",
			Object: fmt.Sprintf("relay %q", o.Consumer),
			Cause:  fmt.Sprintf("shard-count: %d: %s", o.ShardCount, cause), Next: "set it to 1"}
	}
	switch {
	case o.ShardCount > 1 && sinks.IsMirror(o.To):
		return refuse("a mirror cannot be divided: " +
			"to remove rows that the feed no longer has, the relay has to read the whole feed")
	case o.ShardCount == 0 && sinks.IsStdout(o.To):
		o.ShardCount = 1
	case o.ShardCount > 1 && sinks.IsStdout(o.To):
		return refuse("the lines of several shards would have no order")
	}
	return nil
}

func (o *relayOptions) run(ctx context.Context, a *cli.App) error {
	if err := o.resolve(a); err != nil {
		return err
	}
	if !o.once {
		count(a)
	}
	ctx, end := orHangup(ctx)
	defer end()
	if o.url != "" && sinks.IsMirror(o.To) { // the mirror's database also has the cursor
		cfg, file, err := a.Settings()
		if err != nil {
			return err
		}
		log := a.Logger(file, "info")
		cfg.Observer = a.Observer(log)
		stop, err := o.serveMetrics(ctx, a, &cli.Session{File: file, Log: log})
		if err != nil {
			return err
		}
		defer stop()
		return o.deliver(ctx, a, &feedhttp.Client{URL: o.url, Feed: o.Feed, Tracer: a.Tracer}, nil, cfg, log)
	}
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	stop, err := o.serveMetrics(ctx, a, s)
	if err != nil {
		return err
	}
	defer stop()
	return o.deliverFrom(ctx, a, s)
}

// serveMetrics serves metrics, unless the relay runs once.
func (o *relayOptions) serveMetrics(ctx context.Context, a *cli.App, s *cli.Session) (stop func(), err error) {
	if o.once {
		return func() {}, nil
	}
	return o.metrics.serve(ctx, a, s)
}

// deliverFrom delivers from an open database.
func (o *relayOptions) deliverFrom(ctx context.Context, a *cli.App, s *cli.Session) error {
	cfg, err := a.LibraryConfig(s.File)
	if err != nil {
		return err
	}
	cfg.Observer = a.Observer(s.Log)
	if o.url != "" {
		return o.deliver(ctx, a, &feedhttp.Client{URL: o.url, Feed: o.Feed, Tracer: a.Tracer}, s.DB, cfg, s.Log)
	}
	f, err := s.Feed(ctx, o.Feed)
	if err != nil {
		return err
	}
	if database, table := sinks.MirrorOf(o.To); database == a.URL &&
		(table == f.Source().Name || table == f.Source().String()) {
		return &rowfeed.Error{Code: rowfeed.InvalidRequest, Param: "to", Object: fmt.Sprintf("feed %q", o.Feed),
			Cause: "to: it is the feed's own table: every delivery would be a new change of the feed",
			Next:  "name another table"}
	}
	return o.deliver(ctx, a, f, s.DB, cfg, s.Log)
}

func (o *relayOptions) deliver(
	ctx context.Context, a *cli.App, source rowfeed.Source, db *rowfeed.DB, library rowfeed.Config, log *slog.Logger,
) error {
	to, err := sinks.Open(ctx, sinks.Options{To: o.To, Secrets: o.Secret, AllowPrivate: o.AllowPrivate, Rate: o.Rate,
		Stdout: a.Stdout, Library: library})
	if err != nil {
		return open.Scrub(o.To, err)
	}
	defer to.Close()
	r := &relay.Relay{Name: o.Consumer, Source: source, DB: db, Sink: to, Start: rowfeed.Cursor(o.After),
		Limit: o.Limit, ShardCount: o.ShardCount, KeepShardCount: o.keep, Lease: o.Lease,
		SetAside: o.SetAside, Restart: o.Restart || sinks.IsMirror(o.To), Target: sinks.Target(o.To)}
	r.Observe = func(e relay.Event) { o.observe(a, log, e, r.ShardCount) }
	if o.once {
		err = r.RunOnce(ctx)
	} else {
		err = r.Run(ctx)
	}
	o.keep = r.KeepShardCount
	return open.Scrub(o.To, err)
}

// observe logs the events of a relay that has the given number of shards. It leaves out errors of the relay's consumer
// and the shards of this process, because the database's observer logs them.
func (o *relayOptions) observe(a *cli.App, log *slog.Logger, e relay.Event, shards int) {
	switch e.Kind {
	case relay.Working:
		level := slog.LevelInfo
		if o.once || shards > 1 {
			level = slog.LevelDebug
		}
		log.Log(context.Background(), level, "relaying", "feed", e.Feed, "consumer", e.Relay, "shard", e.Shard, "epoch",
			e.Epoch)
	case relay.Delivered:
		log.Debug("delivered", "feed", e.Feed, "consumer", e.Relay, "entries", e.Batch, "accepted", e.Accepted,
			"rejected", e.Rejected, "took", e.Took)
	case relay.StandingBy:
		log.Info("standing by: another process delivers", "feed", e.Feed, "consumer", e.Relay, "owner", e.Owner,
			"epoch", e.Epoch)
	case relay.Trouble:
		a.Repeated(log, "relay "+e.Relay, "a relay fails, and tries again", "consumer", e.Relay, "error", e.Err)
	}
}

// relayRestartPause is the pause before a relay of rowfeed.yaml that has failed is started again. An operator may have
// removed the cause in the meantime.
const relayRestartPause = time.Minute

// Relays returns the relays of rowfeed.yaml.
func Relays(a *cli.App, s *cli.Session) ([]*relayOptions, error) {
	all := make([]*relayOptions, len(s.File.Relays))
	names := map[string]bool{}
	for i, r := range s.File.Relays {
		o := &relayOptions{Relay: r}
		if err := o.resolve(a); err != nil {
			return nil, fmt.Errorf("relay %d of %s: %w", i+1, s.File.Path, err)
		}
		name := o.Feed + " " + o.Consumer
		if names[name] {
			return nil, &config.Error{Path: s.File.Path,
				Cause: fmt.Sprintf("two relays of feed %q have the consumer %q", o.Feed, o.Consumer),
				Next:  "give each relay another consumer name"}
		}
		names[name], all[i] = true, o
	}
	return all, nil
}

// StartRelays runs relays until ctx ends; wait returns after they have ended. A relay that fails is started again after
// a pause. A relay is not started again if another process has changed the shard count of its cursors: that process was
// started later, and its shard count is valid.
func StartRelays(
	ctx context.Context, a *cli.App, s *cli.Session, all []*relayOptions, pause time.Duration,
) (wait func()) {
	var running sync.WaitGroup
	for _, o := range all {
		running.Go(func() {
			for ctx.Err() == nil {
				err := o.deliverFrom(ctx, a, s)
				if ctx.Err() != nil {
					return
				}
				if errors.Is(err, rowfeed.Conflict) {
					s.Log.Error("a relay has ended until this process is started again",
						"feed", o.Feed, "consumer", o.Consumer, "error", err)
					return
				}
				s.Log.Error("a relay has ended and is started again",
					"feed", o.Feed, "consumer", o.Consumer, "error", err, "pause", pause)
				t := time.NewTimer(pause)
				select {
				case <-ctx.Done():
				case <-t.C:
				}
				t.Stop()
			}
		})
	}
	return running.Wait
}
