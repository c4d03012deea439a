package service

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rowfeed/rowfeed"
	"github.com/rowfeed/rowfeed/cmd/rowfeed/internal/cli"
	"github.com/rowfeed/rowfeed/cmd/server"
	"github.com/spf13/cobra"
)

// discoverEvery is the default of publishOptions.discover.
const discoverEvery = 2 * time.Second

type PublishOptions struct {
	names []string
	once  bool
	// discover is how often a publisher of all feeds looks for new ones.
	Discover time.Duration
	metrics  metricsFlag
}

func newPublish(a *cli.App) *cobra.Command {
	o := &PublishOptions{Discover: discoverEvery}
	cmd := &cobra.Command{
		Use:   "publish [NAME…]",
		Short: "Give positions to what was written",
		Long: `Gives positions to changes, until it is interrupted: of the named feeds, or of all of
them, also those added meanwhile. It survives a database that goes away. Several
publishers at once are safe. "rowfeed serve" has a publisher of its own. With mode
outbox it gives records their ULIDs, ahead of readers, and every minute purges what
--retain does not keep; with mode blocking writers give positions, and there is nothing
to do.

The publishers of a feed take turns through the lease "publish:NAME": one works, the
others stand by. When it ends the next one goes on within 5 seconds or so; when it was
killed, after 10 more. "rowfeed status" tells who publishes. With --without-lease this
one works whoever else does; only readers who query the tables of a MariaDB server
without rowfeed need one publisher at a time.

With --once it publishes what is waiting and ends, whoever has the lease, with a line
for each feed: kv: 3 keys published, head 3. (Of a feed with ULIDs that has several
shards it tells how many.) It purges nothing.

With --metrics, or the key metrics in rowfeed.yaml, it tells at /metrics how it goes, in
the form of Prometheus, to whoever reaches the address; with --once it does not.`,
		Example: `  rowfeed publish
  rowfeed publish --once kv
  rowfeed publish --metrics :9464`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.names = args
			return o.Run(cmd.Context(), a)
		},
	}
	cmd.Flags().BoolVar(&o.once, "once", false, "publish what is waiting, and end")
	leaseFlag(a, cmd)
	o.metrics.add(cmd)
	return cmd
}

func leaseFlag(a *cli.App, cmd *cobra.Command) {
	cmd.Flags().BoolVar(&a.WithoutLease, "without-lease", false, "publish while others do, instead of taking turns")
}

func (o *PublishOptions) Run(ctx context.Context, a *cli.App) error {
	if !o.once {
		count(a)
	}
	ctx, stop := orHangup(ctx)
	defer stop()
	s, err := a.Connect(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	feeds, err := o.feeds(ctx, s)
	if err != nil {
		return err
	}
	if o.once {
		return o.publishOnce(ctx, a, feeds)
	}
	if len(feeds) == 0 {
		s.Log.Info("there are no feeds yet; `rowfeed feed add NAME --table T` makes one")
	}
	tellNoMore, err := o.metrics.tell(ctx, a, s)
	if err != nil {
		return err
	}
	defer tellNoMore()
	return server.RunPublishers(ctx, server.Publishing{DB: s.DB, Feeds: o.names, Log: s.Log, DiscoverEvery: o.Discover})
}

// feeds are the named ones, or all.
func (o *PublishOptions) feeds(ctx context.Context, s *cli.Session) ([]*rowfeed.Feed, error) {
	if len(o.names) == 0 {
		return s.Feeds(ctx)
	}
	var feeds []*rowfeed.Feed
	for _, name := range o.names {
		f, err := s.Feed(ctx, name)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(feeds, f) {
			feeds = append(feeds, f)
		}
	}
	return feeds, nil
}

func (o *PublishOptions) publishOnce(ctx context.Context, a *cli.App, feeds []*rowfeed.Feed) error {
	if len(feeds) == 0 {
		return a.PrintLine("there are no feeds; `rowfeed feed add NAME --table T` makes one")
	}
	var failed []error
	for _, f := range feeds {
		n, err := f.Publish(ctx)
		if err != nil { // the others are published all the same
			failed = append(failed, err)
			continue
		}
		info, err := f.Info(ctx)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		published := cli.Plural(int64(n), "key")
		if err := a.PrintLine("%s: %s published, %s", f.Name(), published, headText(info)); err != nil {
			return err
		}
	}
	return errors.Join(failed...)
}

// headText says how far a feed is; of one whose shards are feeds by themselves how many there are.
func headText(info *rowfeed.Info) string {
	switch {
	case info.MoreShardIDs:
		return "more than " + cli.Plural(int64(len(info.ShardIDs)), "shard")
	case len(info.ShardIDs) > 1:
		return cli.Plural(int64(len(info.ShardIDs)), "shard")
	case info.Head == rowfeed.Beginning:
		return "head 0"
	}
	return "head " + string(info.Head)
}
