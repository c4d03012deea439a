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
	// keep is relay.Relay.KeepShardCount: it was started before.
	keep    bool
	metrics metricsFlag
}

func newRelay(a *cli.App) *cobra.Command {
	o := &relayOptions{}
	cmd := &cobra.Command{
		Use:   "relay NAME --to URL",
		Short: "Deliver a feed: webhooks, NATS, Kafka, another database's table, stdout",
		Long: `Delivers a feed until it is interrupted. What it delivers to is the URL given with --to:

  stdout:                                entry lines, NDJSON
  https://host/path                      webhook: POST of batches, signed as Standard
                                         Webhooks has it; private addresses are refused
                                         unless --allow-private
  nats://host:4222/subject               NATS JetStream, de-duplicated by Msg-Id;
                                         ?creds=FILE, ?tls=true
  kafka://host:9092,host:9092/topic      Kafka, keyed by the row's key, a null for a
                                         delete; ?tls=true, ?mechanism=scram-sha-256
  postgres://host/database?table=orders  a table of another database that follows the
                                         feed (sqlite: and mysql: as well): it must be
                                         there, with the same columns and primary key

Everything arrives at least once, the versions of a row in their order; in a mirror
each takes effect exactly once, and rows that a new pass from the beginning does not
bring are removed. How far a relay has come is kept under its --consumer name, in the
feed's database, or in the mirror's: see "rowfeed consumer". Of several with one name
one works, the others stand by, and say so; with --once, too.

With --shard-count N, said once or the same for all of one name, they share the work:
the feed's keys are divided into N shards (at most the feed's data shards), each with
a cursor, a lease and a batch under way. Every process that runs, or comes, or goes,
has its even share of them within three times --lease; "rowfeed status" and
"rowfeed lease list" show who has which, and since when. The versions of a row keep
their order, rows of different shards have none. A mirror and stdout have N = 1.
Another N than before divides the keys anew, from the lowest cursors: some entries
come again, and processes that were started with the former N end, also those that
stand by. In "rowfeed serve" such a relay rests until the server is started again.

Of a feed with ULIDs, each shard of which is a feed by itself, N is the number of
workers that share the shards; another N moves no cursor. A mirror of one keeps rows
that the feed has lost, and ends when a cursor is refused; a shard that has missed
entries that were purged rests by itself.

A receiver that is away is waited for. An entry that it refuses ends the relay after
some attempts, or with --set-aside becomes a dead letter: see "rowfeed dead". Of
several shards only the entry's rests then, and is tried again now and then: "rowfeed
consumer list" says why.

Secrets need not stand in the command line: --to and --secret take env:NAME and
file:PATH in the place of a value. --metrics is as in "rowfeed publish".

Relays under the key relays of rowfeed.yaml are run by "rowfeed serve"; "rowfeed config
reference" has their keys:

  relays:
    - feed: orders
      to: https://example.com/hook
      secret: [file:/run/secrets/hook]
      set_aside: true`,
		Example: `  rowfeed relay kv --to stdout: --once
  rowfeed relay kv --to https://example.com/hook --secret env:HOOK_SECRET
  rowfeed relay kv --to 'postgres://me@localhost/copy?table=kv'
  rowfeed relay kv --to env:KAFKA_URL --consumer warehouse --after now`,
		Args: cli.Args(1, 1, "the feed's NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Feed = args[0]
			if o.To == "" {
				return cli.WrongUse(cmd, "rowfeed relay: --to is missing: %s", sinks.Forms)
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
		"`name` under which it remembers how far it has come (default: one made of the URL)")
	flags.StringVar(&o.After, "after", "",
		`where a new relay begins: "now", or "at:" with an RFC 3339 time (default: the beginning)`)
	flags.IntVar(&o.Limit, "limit", 0, "at most so many entries a batch (default 500)")
	flags.IntVar(&o.ShardCount, "shard-count", 0, "divide the feed into so many `shards`, "+
		"which all processes of the name share (default: as many as it has, 1 if it is new)")
	flags.BoolVar(&o.SetAside, "set-aside", false, "set keys aside whose entries are refused, and go on")
	flags.BoolVar(&o.Restart, "restart", false,
		"begin again when the feed was set back, instead of stopping (mirrors always do, but of feeds with ULIDs)")
	flags.DurationVar(&o.Lease, "lease", 0, "`time` that a claim on the lease, or on those of the shards, lasts "+
		"without renewal; a relay that was killed is replaced so much later, and a moment (default 10s)")
	flags.StringSliceVar(&o.Secret, "secret", nil,
		"sign a webhook's requests with this `secret`, env:NAME or file:PATH; several while they are exchanged")
	flags.BoolVar(&o.AllowPrivate, "allow-private", false, "let a webhook be on this machine or in a private network")
	flags.Float64Var(&o.Rate, "rate", 0, "at most so many `requests` a second to a webhook")
	flags.BoolVar(&o.once, "once", false, "deliver what is there, then end")
	flags.StringVar(&o.url, "url", "", "read from the server at this `URL` instead of the database")
}

// resolve puts the values of variables and files in their places, and sees to it that no
// message shows their passwords.
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
			Cause:  fmt.Sprintf("shard-count: %d: %s", o.ShardCount, cause), Next: "leave it at 1"}
	}
	switch {
	case o.ShardCount > 1 && sinks.IsMirror(o.To):
		return refuse("what a pass from the beginning did not bring, and is to be removed, " +
			"a mirror can tell of the whole feed only")
	case o.ShardCount == 0 && sinks.IsStdout(o.To):
		o.ShardCount = 1
	case o.ShardCount > 1 && sinks.IsStdout(o.To):
		return refuse("lines of several shards would have no order")
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
	if o.url != "" && sinks.IsMirror(o.To) { // its cursor is there, too
		cfg, file, err := a.Settings()
		if err != nil {
			return err
		}
		log := a.Logger(file, "info")
		cfg.Observer = a.Observer(log)
		stop, err := o.tell(ctx, a, &cli.Session{File: file, Log: log})
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
	stop, err := o.tell(ctx, a, s)
	if err != nil {
		return err
	}
	defer stop()
	return o.work(ctx, a, s)
}

// tell tells metrics of a relay that stays.
func (o *relayOptions) tell(ctx context.Context, a *cli.App, s *cli.Session) (stop func(), err error) {
	if o.once {
		return func() {}, nil
	}
	return o.metrics.tell(ctx, a, s)
}

// work delivers from an open database.
func (o *relayOptions) work(ctx context.Context, a *cli.App, s *cli.Session) error {
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
			Cause: "to: it is the feed's own table: writing it would change it, for ever", Next: "name another table"}
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
		SetAside: o.SetAside, Restart: o.Restart || sinks.IsMirror(o.To)}
	r.Observe = func(e relay.Event) { o.observe(a, log, e, r.ShardCount) }
	if o.once {
		err = r.RunOnce(ctx)
	} else {
		err = r.Run(ctx)
	}
	o.keep = r.KeepShardCount
	return open.Scrub(o.To, err)
}

// observe logs what happens to a relay of so many shards. Of what its consumer is in trouble
// with, and of the shards that this process has, the database's observer is told already.
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
		log.Warn("trouble", "consumer", e.Relay, "error", e.Err)
	}
}

// relayAgain is the pause before a relay of rowfeed.yaml that has ended is started again:
// an operator may have mended what ended it.
const relayAgain = time.Minute

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
				Next:  "give each a name of its own"}
		}
		names[name], all[i] = true, o
	}
	return all, nil
}

// StartRelays runs relays until ctx ends; wait returns after they have ended. A relay that fails is started again after
// a pause, except if another process has changed the shard count of its cursors: that process was started later, and
// its number counts.
func StartRelays(
	ctx context.Context, a *cli.App, s *cli.Session, all []*relayOptions, again time.Duration,
) (wait func()) {
	var running sync.WaitGroup
	for _, o := range all {
		running.Go(func() {
			for ctx.Err() == nil {
				err := o.work(ctx, a, s)
				if ctx.Err() != nil {
					return
				}
				if errors.Is(err, rowfeed.Conflict) {
					s.Log.Error("a relay has ended until this process is started again",
						"feed", o.Feed, "consumer", o.Consumer, "error", err)
					return
				}
				s.Log.Error("a relay has ended and is started again",
					"feed", o.Feed, "consumer", o.Consumer, "error", err, "pause", again)
				t := time.NewTimer(again)
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
